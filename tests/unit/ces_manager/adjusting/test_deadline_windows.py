"""Deadlines that are missed in windows running."""

from __future__ import annotations

import pytest

from ces_manager.adjusting.deadline_windows import WINDOW_S, Counts, DeadlineWindows, counts_of


def looked(*windows: tuple[int, int], every_s: float = WINDOW_S) -> list[list[str]]:
    """What each look says after so many further answers, of which so many are late."""
    seen, answers, late, told = DeadlineWindows(), 0, 0, []
    seen.look({"loop": Counts(0, 0)}, 0.0)
    for i, (more, slow) in enumerate(windows):
        answers, late = answers + more, late + slow
        told.append(seen.look({"loop": Counts(answers, late)}, (i + 1) * every_s))
    return told


def test_three_windows_in_a_row_call_for_a_look_and_begin_anew() -> None:
    assert looked(*[(100, 6)] * 7) == [[], [], ["loop"], [], [], ["loop"], []]


def test_one_window_in_time_or_a_twentieth_late_is_no_miss() -> None:
    assert looked((100, 6), (100, 6), (100, 5), (100, 6), (100, 6)) == [[], [], [], [], []]


def test_a_window_without_answers_says_nothing() -> None:
    assert looked((100, 6), (100, 6), (0, 0), (100, 6)) == [[], [], [], ["loop"]]


def test_looks_within_a_window_wait_for_its_end() -> None:
    assert looked(*[(10, 10)] * 6, every_s=WINDOW_S / 2) == [[], [], [], [], [], ["loop"]]


def test_a_longer_time_between_two_looks_is_one_window() -> None:
    assert looked(*[(10, 10)] * 4, every_s=3 * WINDOW_S) == [[], [], ["loop"], []]


def test_a_sender_that_begins_anew_says_nothing_for_one_window() -> None:
    seen = DeadlineWindows()
    told = [
        seen.look({"loop": Counts(answers, late)}, i * WINDOW_S)
        for i, (answers, late) in enumerate([(100, 50), (200, 150), (10, 10), (20, 20), (30, 30)])
    ]
    assert told == [[], [], [], [], ["loop"]]


@pytest.mark.parametrize(
    "told",
    [None, {}, {"requests": 3}, {"requests": {"loop": []}}, {"requests": {"loop": {"answers": True, "late": 1}}}]
    + [{"requests": {"loop": {"answers": value}}} for value in (-1, 1.5, "9", 2**60, float("nan"))],
)
def test_what_cannot_be_read_is_left_out(told: dict[str, object] | None) -> None:
    assert counts_of(told) == {}


def test_a_request_without_an_answer_counts_as_late() -> None:
    told = {"requests": {"loop": {"answers": 90, "late": 4, "lost": 10, "p50_ms": 4.0}}}
    assert counts_of(told) == {"loop": Counts(100, 14)}
