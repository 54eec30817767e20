"""The process that keeps a cluster up: what it resumes, and what it leaves when that fails."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ces_testbed import background
from ces_testbed.errors import StartFailed
from ces_testbed.progress import News, read_news
from ces_testbed.spec import Addresses, ClusterSpec, Files, Ports
from ces_testbed.topology import default_topology

PORTS = Ports(nats=1, nats_monitor=6, api=2, scheduler=3, compute_ctl=4, network_ctl=5)


class FakeCluster:
    """Starts, or fails to; once it is up it is told to end."""

    url = "http://127.0.0.1:2"
    fails = False
    made: list[FakeCluster] = []

    def __init__(self, spec: ClusterSpec, files: Files, *, resume: bool, remark: Callable[[str], None], **_: Any):
        self.resume, self._remark = resume, remark
        self.kept_state: bool | None = None
        self.made.append(self)

    def start(self) -> None:
        self._remark("waiting for the scheduler: the solver is being compiled")
        if self.fails:
            raise StartFailed("no space")
        signal.raise_signal(signal.SIGTERM)

    def stop(self, *, keep_state: bool) -> list[str]:
        self.kept_state = keep_state
        return []


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(background, "Cluster", FakeCluster)
    monkeypatch.setattr(FakeCluster, "made", [])
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.prepare()
    made.spec.write_text(ClusterSpec(name="lab", topology=default_topology()).model_dump_json())
    return made


def was_up(files: Files) -> None:
    files.addresses.write_text(Addresses(host="127.0.0.1", ports=PORTS).model_dump_json())


def kinds(files: Files) -> list[str]:
    return [item.kind for item in read_news(files.progress, 0)[0]]


def test_what_it_waits_for_is_news(files: Files) -> None:
    assert background.keep(files, tied=False) == 0
    items, _ = read_news(files.progress, 0)
    assert items[0] == News(kind="remark", text="waiting for the scheduler: the solver is being compiled")
    assert kinds(files)[1:] == ["ready", "stopped"]
    (cluster,) = FakeCluster.made
    assert (cluster.resume, cluster.kept_state) == (False, False)


def test_a_cluster_that_was_up_is_resumed_and_ends_as_any_other(files: Files) -> None:
    was_up(files)
    assert background.keep(files, tied=False) == 0
    (cluster,) = FakeCluster.made
    assert (cluster.resume, cluster.kept_state) == (True, False)


@pytest.mark.parametrize("resumed", [False, True])
def test_only_a_resumption_that_fails_keeps_the_state(
    files: Files, monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    monkeypatch.setattr(FakeCluster, "fails", True)
    if resumed:
        was_up(files)
    assert background.keep(files, tied=False) == 1
    assert FakeCluster.made[0].kept_state is resumed
    assert kinds(files)[1:] == ["failed", "stopped"]


def test_a_folder_without_a_cluster_starts_none(tmp_path: Path) -> None:
    assert background.keep(Files(tmp_path / "none"), tied=False) == 1
    assert FakeCluster.made == []
