"""Percentiles and counts of answers."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ces_workloads.pipeline.latencies import KEPT, LOST_MS, Latencies, percentile


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_percentile_has_that_share_at_or_below_it_and_no_smaller_value_has(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert sum(value <= found for value in ordered) >= share * len(ordered) - 1e-9
    assert sum(value < found for value in ordered) < math.ceil(share * len(ordered))


def test_answers_are_counted_once_and_late_ones_too() -> None:
    told = Latencies(50.0)
    for number in (1, 2, 3):
        told.asked(number, 0.0)
    told.answered(1, 10.0)
    told.answered(1, 20.0)
    told.answered(2, 60.0)
    told.answered(9, 60.0)
    assert told.waiting == 1
    assert told.report() == {
        "p50_ms": 10.0, "p95_ms": 60.0, "p99_ms": 60.0, "sent": 3, "answers": 2, "late": 1, "lost": 0,
    }  # fmt: skip


def test_without_an_answer_there_are_no_percentiles() -> None:
    assert Latencies(None).report() == {"sent": 0, "answers": 0, "late": 0, "lost": 0}


def test_a_request_without_an_answer_is_lost_and_a_late_answer_to_it_counts_no_more() -> None:
    told = Latencies(5000.0)  # ten times that is more than LOST_MS
    told.asked(1, 0.0)
    told.give_up(LOST_MS + 1)
    assert told.report()["lost"] == 0
    told.give_up(50_001.0)
    told.answered(1, 50_002.0)
    assert (told.report()["lost"], told.report()["answers"], told.waiting) == (1, 0, 0)


def test_percentiles_are_of_the_latest_answers() -> None:
    told = Latencies(None)
    for number in range(2 * KEPT):
        told.asked(number, 0.0)
        told.answered(number, 100.0 if number < KEPT else 1.0)
    assert told.report()["p99_ms"] == 1.0
    assert told.report()["answers"] == 2 * KEPT


def test_what_is_asked_again_is_one_request_and_begun_when_it_was_asked_first() -> None:
    told = Latencies(None)
    told.asked(1, 0.0)
    told.asked(2, 900.0)
    assert told.again(1000.0, 1000.0) == [1]
    assert told.again(1500.0, 1000.0) == []
    told.answered(2, 1600.0)
    assert told.again(2000.0, 1000.0) == [1]
    told.answered(1, 2100.0)
    told.answered(1, 2200.0)
    assert told.again(9000.0, 1000.0) == []
    report = told.report()
    assert (report["sent"], report["answers"], report["lost"], report["repeated"]) == (2, 2, 0, 2)
    assert report["p99_ms"] == 2100.0


def test_answers_are_told_one_by_one_once() -> None:
    found = Latencies(None)
    found.asked(1, 10.0)
    found.answered(1, 35.5)
    found.answered(1, 36.0)
    assert found.fresh() == [(35.5, 25.5)]
    assert found.fresh() == []
