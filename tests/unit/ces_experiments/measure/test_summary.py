"""What emulated nodes tell of each other: of made-up nodes whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ces_common.scores import REFERENCE
from ces_experiments.measure import report, summary
from ces_experiments.measure.program import PROGRAMS, work
from ces_experiments.measure.question import Question

CORES = 2
SHARES = (0.25, 0.5, 1.0)


def measured(share: float, repeat: int, wrong: float = 1.0, others: float = 0.0) -> dict[str, Any]:
    """A node of two reference cores whose threads may use a share of them. ``wrong``: how much more it tells."""
    told = []
    for kind in ("integer", "float", "memory"):
        for threads in (1, CORES):
            given = min(threads, CORES * share)
            rate = wrong * REFERENCE[kind] * given
            told.append(
                {
                    "kind": kind, "threads": threads, "rates": [rate * 0.99, rate, rate, rate, rate * 1.01],
                    "others": others, "per_cpu_s": REFERENCE[kind], "source": "made up",
                }
            )  # fmt: skip
    return {"share": share, "repeat": repeat, "others": others, "measured": told}


def ran(share: float, repeat: int, processes: int, others: float = 0.0) -> dict[str, Any]:
    """Steps of 10 ms of CPU time."""
    given = min(processes, CORES * share)
    return {
        "share": share, "repeat": repeat, "program": "primes", "processes": processes, "others": others,
        "steps": 100, "cpu_ms": 10.0, "step_ms": 10.0 / given,
    }  # fmt: skip


def results(*rows: Mapping[str, Any]) -> dict[str, Any]:
    question = {"shares": list(SHARES), "programs": ["primes"], "processes": [1, 2], "repeats": 2}
    return {"question": question, "cores": CORES, "rows": list(rows)}


TRUE = results(
    *(measured(share, repeat) for share in SHARES for repeat in (0, 1)),
    *(ran(share, repeat, processes) for share in SHARES for repeat in (0, 1) for processes in (1, 2)),
)


def test_of_true_measurements_everything_is_right() -> None:
    assert summary.ratios(TRUE, 0.25, "integer") == [pytest.approx(1)] * 2
    assert summary.taus(TRUE) == [1.0, 1.0]
    found = list(summary.errors(TRUE))
    assert len(found) == 2 * 2 * 6, "repeats, processes, ordered pairs of shares"
    assert all(each["cpu"] == pytest.approx(0) for each in found)
    assert all(each["step"] == pytest.approx(0) for each in found)
    assert all(each["quiet"] for each in found)
    assert max(each["unscaled"] for each in found) == pytest.approx(3), "a quarter takes four times as long"


def test_a_node_that_tells_too_much_is_found_out() -> None:
    rows = [measured(0.25, 0, wrong=9.0), measured(0.5, 0), measured(1.0, 0)]
    found = results(*rows)
    assert summary.ratios(found, 0.25, "float") == [pytest.approx(9)]
    assert summary.taus(found) == [pytest.approx(-1 / 3)]


def test_what_is_not_there_is_left_out() -> None:
    assert summary.ratios(results(measured(0.25, 0)), 0.25, "integer") == [], "the whole machine was not measured"
    assert list(summary.errors(results(ran(0.25, 0, 1), ran(1.0, 0, 1)))) == []
    assert summary.taus(results(measured(1.0, 0))) == []
    assert [grid.rows for grid in report.tables(results())]


def test_others_are_told() -> None:
    loud = results(measured(1.0, 0, others=0.3), measured(0.5, 0), ran(1.0, 0, 1, others=0.4), ran(0.5, 0, 1))
    assert summary.others(loud, 1.0) == [0.3]
    assert not any(each["quiet"] for each in summary.errors(loud))
    assert max(summary.spreads(loud, 0.5)) == pytest.approx(0.02)


def test_tables_and_pictures_say_it() -> None:
    nodes, order, predictions = report.tables(TRUE)
    assert [row[0] for row in nodes.rows] == ["100%", "50%", "25%"]
    assert nodes.rows[2][2] == "1.000 to 1.000"
    assert order.rows == [["all repeats", "2", "1.00", "1.00"]]
    assert predictions.rows[0][:4] == ["primes, 1 process", "12", "0.0%", "0.0%"]
    assert set(report.pictures(TRUE)) == {"measure.png"}


def test_the_order_is_drawn_by_the_seed() -> None:
    question = Question()
    assert question.in_order(0) == question.in_order(0)
    assert {tuple(question.in_order(repeat)) for repeat in range(9)} != {tuple(question.in_order(0))}
    assert sorted(question.in_order(0)) == sorted(question.shares)
    assert question.runs == 5 * 3 * (1 + 6 * 2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_does_its_steps(name: str) -> None:
    assert work(name, 0.0) == 0
    assert work(name, 0.02) >= 1
