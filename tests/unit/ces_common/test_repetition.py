"""When an agent repeats what it reports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_common.repetition import LONGEST_S, Repetition


def said_at(repetition: Repetition, interval_s: float, seconds: float, text: str = "same") -> list[float]:
    looks = [step * interval_s for step in range(int(seconds / interval_s) + 1)]
    return [now for now in looks if repetition.due(now, text)]


def test_what_does_not_change_is_repeated_soon_and_then_ever_more_rarely() -> None:
    assert said_at(Repetition(2), 2, 64) == [0, 2, 6, 14, 30, 46, 62]  # looked at each 2 s, so that 15 become 16


def test_a_change_is_said_at_once_and_repeated_soon_again() -> None:
    repetition = Repetition(2)
    said_at(repetition, 2, 30)
    assert repetition.due(31, "other")
    assert not repetition.due(32, "other")
    assert repetition.due(33, "other")


def test_what_may_have_been_lost_is_due_at_once() -> None:
    repetition = Repetition(2)
    said_at(repetition, 2, 30)
    assert not repetition.due(31, "same")
    repetition.restart()
    assert repetition.due(31.5, "same")


def test_a_long_interval_is_kept() -> None:
    assert said_at(Repetition(60), 60, 240) == [0, 60, 120, 180, 240]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.01, 10)), max_size=80), st.floats(0.1, 30))
def test_nobody_waits_for_a_report_longer_than_the_longest_time_and_a_look(
    looks: list[tuple[str, float]], interval_s: float
) -> None:
    repetition, now, said, text = Repetition(interval_s), 0.0, 0.0, ""
    for what, later_s in looks:
        now += later_s
        due = repetition.due(now, what)
        assert due or (what == text and now < said + max(LONGEST_S, interval_s))
        if due:
            said, text = now, what


@given(st.floats(0.1, 30), st.floats(0, 60))
def test_what_was_said_is_due_when_the_time_that_was_told_is_over(interval_s: float, later_s: float) -> None:
    repetition = Repetition(interval_s)
    repetition.due(0.0, "same")
    left_s = repetition.left_s(later_s)
    assert repetition.due(later_s, "same") == (left_s == 0)
