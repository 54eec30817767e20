"""The lease: counted from sending, through restarts and reboots, and never longer than it was given."""

import json
from pathlib import Path

import pytest
from agent_parts import FakeTime
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.deadline import LeaseWatch, deadline_file
from ces_edge_agent.lease import Lease

LEASE_S = 30.0


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lease.json"


def test_there_is_none_before_the_first_grant(path: Path, time: FakeTime) -> None:
    assert not Lease(path.parent, time.clocks()).holds()


def test_a_grant_counts_from_when_the_heartbeat_was_sent(path: Path, time: FakeTime) -> None:
    lease, sent = Lease(path.parent, time.clocks()), time.steady
    time.passes(4)
    lease.renew(sent, LEASE_S)
    assert lease.remaining() == pytest.approx(26)
    time.passes(25.9)
    assert lease.holds()
    time.passes(0.2)
    assert not lease.holds()


def test_an_answer_that_comes_late_shortens_nothing(path: Path, time: FakeTime) -> None:
    lease, first = Lease(path.parent, time.clocks()), time.steady
    time.passes(5)
    lease.renew(time.steady, LEASE_S)
    lease.renew(first, LEASE_S)
    assert lease.remaining() == pytest.approx(LEASE_S)


def test_it_survives_a_restart_of_the_agent(path: Path, time: FakeTime) -> None:
    Lease(path.parent, time.clocks()).renew(time.steady, LEASE_S)
    time.passes(20)
    time.wall += 99_999  # somebody sets the clock meanwhile
    again = Lease(path.parent, time.clocks())
    assert again.remaining() == pytest.approx(10)


def test_it_survives_a_reboot_for_what_is_left_of_it(path: Path, time: FakeTime) -> None:
    Lease(path.parent, time.clocks()).renew(time.steady, LEASE_S)
    time.reboot(12)
    assert Lease(path.parent, time.clocks()).remaining() == pytest.approx(18)
    time.reboot(18)
    assert not Lease(path.parent, time.clocks()).holds()


def test_the_disk_is_waited_for_now_and_then_only(path: Path, time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr("ces_edge_agent.lease.write_atomically", lambda _, text: written.append(text))
    lease = Lease(path.parent, time.clocks())
    for _ in range(30):  # a minute of heartbeats
        lease.renew(time.steady, LEASE_S)
        time.passes(2)
    assert 6 <= len(written) <= 8
    assert Lease(path.parent, time.clocks()).remaining() == pytest.approx(lease.remaining(), abs=0.01)


def test_a_reboot_finds_no_less_than_two_thirds_of_it(path: Path, time: FakeTime) -> None:
    lease = Lease(path.parent, time.clocks())
    for _ in range(23):
        lease.renew(time.steady, LEASE_S)
        time.passes(2)
    left = lease.remaining()
    time.reboot(0)
    assert left - LEASE_S / 3 <= Lease(path.parent, time.clocks()).remaining() <= left


def test_a_clock_that_went_back_over_a_reboot_ends_it(path: Path, time: FakeTime) -> None:
    """A board without a battery starts in the past; then nothing tells how long it was off."""
    Lease(path.parent, time.clocks()).renew(time.steady, LEASE_S)
    time.reboot(-86_400)
    assert not Lease(path.parent, time.clocks()).holds()


@given(off=st.floats(-(10**9), 10**9), answered=st.floats(0, 10))
def test_a_reboot_never_gives_more_than_was_granted(
    tmp_path_factory: pytest.TempPathFactory, off: float, answered: float
) -> None:
    time, path = FakeTime(), tmp_path_factory.mktemp("lease") / "lease.json"
    lease, sent = Lease(path.parent, time.clocks()), time.steady
    time.passes(answered)
    lease.renew(sent, LEASE_S)
    time.reboot(off)
    again = Lease(path.parent, time.clocks())
    assert again.remaining() <= LEASE_S + 1e-3
    if off >= LEASE_S:
        assert not again.holds()


@pytest.mark.parametrize(
    "kept", ["", "rubbish", "[]", "{}", '{"boot": "first", "steady": null}', '{"boot": "x", "wall": 1}', "\x00"]
)
def test_what_cannot_be_read_is_no_lease(path: Path, time: FakeTime, kept: str) -> None:
    path.write_text(kept)
    assert not Lease(path.parent, time.clocks()).holds()


def test_a_full_disk_does_not_take_the_lease_away(path: Path, time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    lease = Lease(path.parent, time.clocks())
    lease.renew(time.steady, LEASE_S)
    before = json.loads(path.read_text())
    monkeypatch.setattr("ces_edge_agent.lease.write_atomically", full)
    time.passes(10)
    lease.renew(time.steady, LEASE_S)
    assert lease.remaining() == pytest.approx(LEASE_S)
    assert json.loads(path.read_text()) == before
    assert Lease(path.parent, time.clocks()).remaining() == pytest.approx(LEASE_S, abs=0.01), "by the deadline file"
    time.reboot(1)
    assert Lease(path.parent, time.clocks()).remaining() == pytest.approx(19)


def test_a_full_disk_does_not_take_the_lease_away_from_workers_without_an_agent_either(
    path: Path, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No new file can be made, and none can grow."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    lease = Lease(path.parent, time.clocks())
    watch = LeaseWatch(deadline_file(path.parent), time.boot, lambda: time.steady)
    lease.renew(time.steady, LEASE_S)
    size = deadline_file(path.parent).stat().st_size
    names = sorted(each.name for each in deadline_file(path.parent).parent.iterdir())
    monkeypatch.setattr("ces_edge_agent.lease.write_atomically", full)
    time.passes(10)
    lease.renew(time.steady, LEASE_S)
    time.passes(25)
    assert not watch.lapsed()
    assert deadline_file(path.parent).stat().st_size == size
    assert sorted(each.name for each in deadline_file(path.parent).parent.iterdir()) == names
