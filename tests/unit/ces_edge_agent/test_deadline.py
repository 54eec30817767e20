"""The end of the lease as those see it who look after workers while no agent does: the shim's watch, the sandbox's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from agent_parts import FakeTime
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.deadline import (
    Deadline,
    LeaseWatch,
    deadline_file,
    make_deadline_file,
    read_deadline,
    write_deadline,
)
from ces_edge_agent.lease import Lease
from ces_edge_agent.runtimes import pause_containers

LEASE_S = 30.0


class Machine:
    """A node's state folder, and time."""

    def __init__(self, folder: Path) -> None:
        self.time = FakeTime()
        self.path = deadline_file(folder)
        self.lease = self.agent()

    def agent(self) -> Lease:
        return Lease(self.path.parents[1], self.time.clocks())

    def renew(self) -> None:
        self.lease.renew(self.time.steady, LEASE_S)

    def watch(self) -> LeaseWatch:
        return LeaseWatch(self.path, self.time.boot, lambda: self.time.steady)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_an_agent_the_watch_ends_when_the_agent_would_have(machine: Machine) -> None:
    sent = machine.time.steady
    machine.time.passes(4)
    machine.lease.renew(sent, LEASE_S)
    watch = machine.watch()
    machine.time.passes(25.9)
    assert (machine.lease.holds(), watch.lapsed()) == (True, False)
    machine.time.passes(0.1)
    assert (machine.lease.holds(), watch.lapsed()) == (False, True)


def test_a_renewal_is_noticed_and_an_agent_that_is_slow_is_not_dead(machine: Machine) -> None:
    machine.renew()
    watch = machine.watch()
    for _ in range(5):
        machine.time.passes(LEASE_S - 0.5)
        machine.renew()
        assert not watch.lapsed()
    machine.time.passes(LEASE_S)
    assert watch.lapsed()
    machine.renew()
    assert not watch.lapsed(), "the node has a lease again"


def test_the_time_of_day_plays_no_part(machine: Machine) -> None:
    machine.renew()
    watch = machine.watch()
    for jump in (10**9, -(10**9)):
        machine.time.wall += jump
        assert not watch.lapsed()
    machine.time.passes(LEASE_S)
    machine.time.wall -= 10**6
    assert watch.lapsed()


def test_a_lease_of_another_boot_is_none(machine: Machine) -> None:
    machine.renew()
    machine.time.reboot(1)
    assert machine.watch().lapsed()


def test_an_agent_that_starts_says_at_once_what_is_left(machine: Machine) -> None:
    machine.renew()
    machine.time.reboot(12)
    machine.agent()
    watch = machine.watch()
    machine.time.passes(17.5)
    assert not watch.lapsed()
    machine.time.passes(0.5)
    assert watch.lapsed()


@pytest.mark.parametrize(
    "content", [b"", b"first", b"first 99999 99998\n", b"first x x\n", b"\xff\xff \xff", b"\0" * 64]
)
def test_what_cannot_be_read_changes_nothing_and_grants_nothing(machine: Machine, content: bytes) -> None:
    machine.renew()
    before = machine.watch()
    assert not before.lapsed()
    machine.path.write_bytes(content)
    machine.time.passes(LEASE_S - 1)
    assert not before.lapsed()
    assert machine.watch().lapsed()
    machine.time.passes(1)
    assert before.lapsed()
    machine.path.unlink()
    assert before.lapsed()


@given(ends=st.lists(st.floats(0, 1e8), min_size=1, max_size=5))
def test_what_is_written_is_read_and_never_ends_later(
    tmp_path_factory: pytest.TempPathFactory, ends: list[float]
) -> None:
    path = deadline_file(tmp_path_factory.mktemp("state"))
    make_deadline_file(path)
    for end in ends:
        write_deadline(path, Deadline("boot", end))
        read = read_deadline(path)
        assert read is not None
        assert 0 <= end - read.at < 0.011


@given(before=st.floats(0, 1e6), after=st.floats(0, 1e6), cut=st.integers(0, 80))
def test_who_reads_in_the_middle_of_writing_is_not_misled(
    tmp_path_factory: pytest.TempPathFactory, before: float, after: float, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("state")
    texts, ends = [], []
    for name, end in (("one", before), ("two", after)):
        path = folder / name
        path.touch()
        write_deadline(path, Deadline("b" * 36, end))
        texts.append(path.read_bytes())
        ends.append(read_deadline(path))
    old, new = texts
    (folder / "torn").write_bytes(new[:cut] + old[cut:])
    assert read_deadline(folder / "torn") in [None, *ends]


def test_the_file_is_for_everybody_to_read(machine: Machine) -> None:
    assert machine.path.stat().st_mode & 0o777 == 0o644
    assert machine.path.parent.stat().st_mode & 0o777 == 0o755


# the sandbox's watch: the same decision, in sh


class Sandbox:
    """sandbox.sh with a clock and processes that are files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uptime = folder, folder / "uptime"
        for name in ("keep", "lapsed"):
            (folder / name).mkdir()

    def says(self, now: str, *, lease: bytes | None = None) -> bool:
        """Whether it takes the lease for ended."""
        if lease is not None:
            (self.folder / "deadline").write_bytes(lease)
        self.uptime.write_text(f"{now} 99999.99\n")
        functions = pause_containers.PROGRAM.partition("while sleep")[0]
        script = f'{functions}\nlapsed "$@"'
        command = ["sh", "-c", script, "sandbox", str(self.folder), "a1", str(self.uptime)]
        return subprocess.run(command, check=False).returncode == 0


needs_sh = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@needs_sh
@pytest.mark.parametrize(
    ("now", "end", "lapsed"),
    [
        ("99.99", "100.00", False),
        ("100.00", "100.00", True),
        ("1000.00", "999.99", True),
        ("0.07", "0.08", False),
        ("0.09", "0.08", True),
        ("5.10", "31536000.00", False),
    ],
)
def test_the_sandbox_decides_as_the_shim_does(tmp_path: Path, now: str, end: str, lapsed: bool) -> None:
    sandbox = Sandbox(tmp_path)
    assert sandbox.says(now, lease=f"b {end} {end}\n".encode()) is lapsed
    assert LeaseWatch(tmp_path / "deadline", "b", lambda: float(now)).lapsed() is lapsed


@needs_sh
@pytest.mark.parametrize(
    ("now", "end", "lapsed"),
    [
        ("129.99", "100.00", False),
        ("130.00", "100.00", True),
        ("99.00", "100.00", False),
        ("30.07", "0.08", False),
        ("30.08", "0.08", True),
    ],
)
def test_a_worker_that_outlives_the_lease_ends_that_much_later(
    tmp_path: Path, now: str, end: str, lapsed: bool
) -> None:
    sandbox = Sandbox(tmp_path)
    (tmp_path / "keep" / "a1").write_text("3000\n")
    assert sandbox.says(now, lease=f"b {end} {end}\n".encode()) is lapsed
    assert LeaseWatch(tmp_path / "deadline", "b", lambda: float(now), outlives_s=30).lapsed() is lapsed


@needs_sh
def test_a_worker_that_outlives_the_lease_needs_to_have_had_one(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    (tmp_path / "keep" / "a1").write_text("3000\n")
    assert sandbox.says("5.00")


@needs_sh
@pytest.mark.parametrize("lease", [None, b"", b"b 99 98\n", b"b x x\n", b"rubbish", b"\n"])
def test_a_sandbox_that_never_read_a_lease_has_none(tmp_path: Path, lease: bytes | None) -> None:
    assert Sandbox(tmp_path).says("5.00", lease=lease)


@needs_sh
def test_an_allocation_that_is_told_to_keep_going_keeps_going(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    (tmp_path / "keep" / "a1").touch()
    assert not sandbox.says("100.00", lease=b"b 50.00 50.00\n")
