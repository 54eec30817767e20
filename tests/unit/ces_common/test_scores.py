"""Scores: what follows from what an agent measured."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common.messages.scores import MAX_MEASURED, Kind, Measured, Measurement, NodeScores, ScoreReport
from ces_common.scores import REFERENCE, UNITS, is_noisy, level_of, score_of, scores_of, spread_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def measured(kind: Kind, times: float = 1.0, **more: Any) -> Measurement:
    """So many times as fast as the reference core."""
    rate = times * REFERENCE[kind]
    return Measurement(kind=kind, source="a test", **{"rates": [rate] * 5} | more)


def shown(*measurements: Measurement) -> NodeScores:
    return scores_of(Measured(at=NOW, measurements=list(measurements)))


def test_the_median_counts_and_the_spread_is_that_of_all_repeats() -> None:
    one = measured("integer", rates=[100.0, 98.0, 102.0, 101.0, 60.0])
    assert spread_of(one.rates) == pytest.approx(0.42)
    assert score_of(one) == 100.0 / REFERENCE["integer"]
    (raw,) = shown(one).raw
    assert (raw.rate, raw.unit, raw.noisy) == (100.0, UNITS["integer"], True)


@pytest.mark.parametrize(
    ("rates", "others", "noisy"),
    [
        ([100.0, 104.9], None, False),
        ([100.0, 106.0], None, True),
        ([100.0, 100.0], 0.1, False),
        ([100.0, 100.0], 0.11, True),  # an even load of others is seen by no spread
    ],
)
def test_what_is_noisy(rates: list[float], others: float | None, noisy: bool) -> None:
    assert is_noisy(measured("float", rates=rates, others=others)) is noisy


def test_categories_are_made_of_what_could_be_measured_and_nothing_is_guessed() -> None:
    scores = shown(measured("integer", 1.0), measured("integer", 8.0, threads=4), measured("float", 2.0, threads=4))
    found = {each.category: (round(each.score, 6), each.kinds) for each in scores.categories}
    assert found == {"computing": (4.0, ["integer", "float"]), "core": (1.0, ["integer"])}
    assert shown().categories == []
    assert shown(measured("disk")).level is None, "nothing of the CPU is known"


def test_of_several_types_of_core_the_fastest_counts_as_the_core() -> None:
    types = [measured("integer", times, cores=name) for times, name in ((0.5, "cpu_atom"), (1.5, "cpu_core"))]
    (core,) = (each for each in shown(*types).categories if each.category == "core")
    assert core.score == pytest.approx(1.5)


def test_a_node_is_noisy_where_its_cpu_is_and_not_for_its_disk() -> None:
    assert not shown(measured("integer"), measured("disk", rates=[1e8, 2e8])).noisy
    assert shown(measured("integer", others=0.5), measured("disk")).noisy


def test_levels_double_from_one_to_the_next_and_end_at_both_ends() -> None:
    assert level_of({"computing": 1.0, "core": 1.0}) == 5.0
    assert level_of({"computing": 4.0}) == 7.0
    assert level_of({"computing": 1e9}) == 10.0
    assert level_of({"core": 1e-9}) == 0.0
    assert level_of({"computing": 2.0, "core": 2.0, "memory": 2.0, "storage": 2.0, "communication": 2.0}) == 6.0


@given(st.lists(st.floats(1e-6, 1e18), min_size=2, max_size=5), st.sampled_from(sorted(REFERENCE)))
def test_whatever_an_agent_tells_can_be_shown(rates: list[float], kind: Kind) -> None:
    scores = shown(Measurement(kind=kind, rates=rates, source="a liar"))
    again = NodeScores.model_validate_json(scores.model_dump_json())
    assert again == scores
    assert all(math.isfinite(each.spread) and math.isfinite(each.score) for each in scores.raw)
    assert scores.level is None or 0 <= scores.level <= 10


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_faster_node_has_no_lower_level(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    levels = [level_of({"computing": each, "core": each, "memory": 1.0}) for each in (slow, fast)]
    assert levels[0] is not None
    assert levels[1] is not None
    assert levels[0] <= levels[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rates": [1.0]},
        {"rates": [1.0] * 6},
        {"rates": [0.0, 1.0]},
        {"rates": [float("inf"), 1.0]},
        {"threads": 0},
        {"threads": 10**6},
        {"cores": "\x1b[2J"},
        {"source": "\x1b]0;owned\x07"},
        {"source": "x" * 201},
        {"others": 1.5},
        {"kind": "luck"},
    ],
)
def test_what_is_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"kind": "integer", "rates": [1.0, 1.0], "source": "s"}
    assert Measurement.model_validate(right)
    with pytest.raises(ValidationError):
        Measurement.model_validate(right | wrong)


def test_a_report_of_more_than_a_machine_has_is_refused() -> None:
    one = {"kind": "integer", "rates": [1.0, 1.0], "source": "s"}
    assert ScoreReport.model_validate({"node": "n", "measurements": [one] * MAX_MEASURED})
    with pytest.raises(ValidationError):
        ScoreReport.model_validate({"node": "n", "measurements": [one] * (MAX_MEASURED + 1)})
