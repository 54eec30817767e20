"""What pairs of benchmarks say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_check.benchmarks import BENCHMARKS
from bench_check.pairs import Pair, row

PAGES = Path(__file__).parents[3] / "docs" / "benchmarks"


@pytest.mark.parametrize(
    ("pairs", "more", "verdict"),
    [
        ([(100, 120), (100, 112)], False, "worse"),
        ([(100, 120), (100, 112)], True, "better"),
        ([(100, 120), (100, 105)], False, ""),
        ([(100, 80), (100, 90)], False, "better"),
        ([(100, 80), (100, 90)], True, "worse"),
        ([(100, 300)], False, ""),
    ],
)
def test_a_verdict_is_what_all_pairs_agree_on(pairs: list[Pair], more: bool, verdict: str) -> None:
    assert row("x", pairs, more)[-1] == verdict


def test_a_row_has_medians_and_the_ratios_of_the_pairs() -> None:
    assert row("x", [(10, 12), (20, 10), (30, 30)], False) == ("x", "20", "12", "1.00", "0.50 to 1.20", "")


def test_what_one_side_did_not_measure_is_left_open() -> None:
    assert row("x", [(None, 3.0), (None, 5.0)], False) == ("x", "-", "4", "-", "-", "")
    assert row("x", [(None, 3.0), (2.0, 5.0)], False) == ("x", "2", "4", "2.50", "2.50 to 2.50", "")
    assert row("x", [(0.0, 3.0)], False)[3] == "-", "nothing to divide by"


@pytest.mark.parametrize("name", ["placement", "network"])
def test_figures_are_where_the_benchmark_writes_them(name: str) -> None:
    (benchmark,) = (each for each in BENCHMARKS if each.name == name)
    results = json.loads((PAGES / name / "results.json").read_text())
    assert all(figure.read(results) > 0 for figure in benchmark.figures)
