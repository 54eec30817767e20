"""What time counts towards a deadline."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ces_manager.nodes.deadlines import Responsible, Step, Waited, Waits, waiting_for

SILENT_S = 15.0


def step(*heard: float | None, preparing: bool = False, stamp: int = 1) -> Step:
    return Step(stamp, [Responsible(f"r{i}", each, SILENT_S) for i, each in enumerate(heard)], preparing)


def test_time_counts_up_to_when_all_were_heard() -> None:
    waits = Waits()
    assert waits.look({"j": step(0.0, 0.0)}, 0.0)["j"].idle == 0
    assert waits.look({"j": step(9.0, 5.0)}, 10.0)["j"].idle == 5
    assert waits.look({"j": step(20.0, 20.0)}, 20.0)["j"].idle == 20
    assert waits.look({"j": step(20.0, 20.0, stamp=2)}, 21.0)["j"].idle == 0
    assert waits.look({}, 22.0) == {}


def test_silence_counts_for_nothing_not_even_its_unnoticed_beginning() -> None:
    waits = Waits()
    waits.look({"j": step(0.0)}, 0.0)
    waits.look({"j": step(5.0)}, 5.0)
    for now in range(6, 600):
        assert waits.look({"j": step(5.0)}, now)["j"].idle == 5
    assert waits.look({"j": step(600.0)}, 601.0)["j"].idle <= 6
    assert waits.look({"j": step(None)}, 700.0)["j"].idle <= 6


def test_somebody_who_was_away_once_is_remembered_until_the_next_step() -> None:
    waits = Waits()
    assert not waits.look({"j": step(0.0)}, 0.0)["j"].hindered
    assert waits.look({"j": step(0.0)}, SILENT_S + 1)["j"].hindered
    assert waits.look({"j": step(20.0)}, 20.0)["j"].hindered
    assert not waits.look({"j": step(21.0, stamp=2)}, 21.0)["j"].hindered
    assert waits.look({"j": replace(step(22.0, stamp=2), hindered=True)}, 22.0)["j"].hindered
    assert waits.look({"j": step(23.0, stamp=2)}, 23.0)["j"].hindered
    assert waits.look({"j": step(None, stamp=3)}, 24.0)["j"].hindered, "from the first look on"


def test_what_agents_are_at_is_counted_apart() -> None:
    waits = Waits()
    waits.look({"j": step(0.0)}, 0.0)
    waits.look({"j": step(30.0)}, 30.0)
    waited = waits.look({"j": step(100.0, preparing=True)}, 100.0)["j"]
    assert (waited.idle, waited.preparing) == (30, 70)


def test_it_says_who_is_away_and_for_how_long() -> None:
    now, waited = 100.0, Waited(1, 0.0, preparing=70.0)
    assert waiting_for(step(60.0, 95.0), waited, now, 0.0) == "waiting for r0, not heard for 40 s"
    assert waiting_for(step(None), waited, now, 80.0) == "waiting for r0, not heard for 20 s"
    assert waiting_for(step(95.0), waited, now, 0.0) is None
    preparing = waiting_for(step(95.0, preparing=True), waited, now, 0.0)
    assert preparing == "waiting for agents that have been preparing workers for 70 s"


@given(st.lists(st.tuples(st.floats(0.1, 30), st.booleans(), st.booleans()), max_size=40))
def test_never_more_than_what_passed_while_all_were_there(looks: list[tuple[float, bool, bool]]) -> None:
    """Two who are heard at some looks and not at others: only what lies between two words of both may count."""
    waits, now, heard = Waits(), 0.0, [0.0, 0.0]
    waits.look({"j": step(*heard)}, now)
    for passed, *there in looks:
        now += passed
        heard = [now if each else last for each, last in zip(there, heard, strict=True)]
        waited = waits.look({"j": step(*heard)}, now)["j"]
        assert waited.idle <= min(heard) + 1e-9
