"""The supervisor keeps services running, and ends them when told."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from ces_testbed.processes import Known, Records
from ces_testbed.supervisor import Service, Supervisor, UnknownService

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "processes.json")


@pytest.fixture
def supervisor(records: Records) -> Iterator[Supervisor]:
    made = Supervisor(records)
    yield made
    made.stop(made.names())


def service(tmp_path: Path, name: str, command: tuple[str, ...] = SLEEP) -> Service:
    return Service(name, command, dict(os.environ), tmp_path / "logs" / f"{name}.log")


def pid_of(supervisor: Supervisor, name: str) -> int:
    pid = supervisor.pid(name)
    assert pid is not None
    return pid


def test_a_killed_service_starts_again(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.add(service(tmp_path, "one"))
    before = pid_of(supervisor, "one")
    supervisor.kill("one")
    wait_for(lambda: supervisor.pid("one") not in (None, before), "it runs again")
    assert supervisor.starts("one") == 2


def test_one_told_to_stay_down_waits_for_its_restart(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.add(service(tmp_path, "one"))
    supervisor.add(service(tmp_path, "two"))
    supervisor.kill("one", stay_down=True)
    supervisor.kill("two")
    wait_for(lambda: supervisor.starts("two") == 2, "the watch has passed over both")
    assert supervisor.pid("one") is None
    supervisor.restart("one")
    assert supervisor.pid("one") is not None


def test_a_restart_ends_what_runs(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.add(service(tmp_path, "one"))
    before = pid_of(supervisor, "one")
    supervisor.restart("one")
    assert pid_of(supervisor, "one") != before


def test_a_service_that_keeps_ending_is_tried_ever_more_slowly(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.add(service(tmp_path, "bad", (sys.executable, "-c", "print('no'); raise SystemExit(3)")))
    wait_for(lambda: supervisor.starts("bad") == 3, "it was tried three times")
    assert (tmp_path / "logs" / "bad.log").read_text().count("no") >= 2


def test_what_runs_is_on_record_until_it_ends(supervisor: Supervisor, records: Records, tmp_path: Path) -> None:
    supervisor.add(service(tmp_path, "one"))
    supervisor.add(service(tmp_path, "two"))
    assert [each.name for each in records.living()] == ["supervisor", "one", "two"]
    one = Known.of("one", pid_of(supervisor, "one"))
    assert one is not None
    supervisor.stop(["two"], ["one"])
    assert not one.alive()
    assert records.read() == []


def test_unknown_and_doubled_names_are_refused(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.add(service(tmp_path, "one"))
    with pytest.raises(UnknownService, match="there are one"):
        supervisor.kill("two")
    with pytest.raises(ValueError, match="runs already"):
        supervisor.add(service(tmp_path, "one"))


def test_a_full_disk_ends_neither_the_watch_nor_the_stopping(
    supervisor: Supervisor, records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor.add(service(tmp_path, "one"))
    refused = []

    def full(*_: object) -> None:
        refused.append(True)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "write", full)
    supervisor.kill("one")
    wait_for(lambda: refused != [], "it was started and could not be written down")
    one = Known.of("one", pid_of(supervisor, "one"))
    assert one is not None
    supervisor.stop(["one"])
    assert not one.alive()
