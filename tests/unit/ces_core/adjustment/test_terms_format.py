"""The section ``adjust`` of instance files."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ces_core.adjustment.terms import TaskFacts, Terms
from ces_core.adjustment.terms_format import read_terms
from ces_core.model.errors import ProblemError


def test_nothing_said_is_an_hour_without_a_budget() -> None:
    assert read_terms({}) == ({}, Terms(3600.0))


def test_all_that_can_be_said() -> None:
    section = {
        "remaining_s": 60, "least_gain": 0.01, "budget": 5, "reserve": 2, "cooling": True, "most_moves": 1,
        "tasks": {"t0": {"restart_s": 2, "requests": 4, "cpu": [1, 3]}},
    }  # fmt: skip
    facts, terms = read_terms(section)
    assert facts == {"t0": TaskFacts(2.0, 4.0, (1.0, 3.0))}
    assert terms == Terms(60.0, 0.01, 5.0, 2.0, cooling=True, most_moves=1)
    assert read_terms(section | {"budget": None})[1].budget == math.inf


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ([1], "adjust"),
        ({"budgets": 1}, "adjust.budgets"),
        ({"tasks": {"t0": {"restart": 1}}}, "adjust.tasks.t0.restart"),
        ({"tasks": {"t0": {"cpu": [1]}}}, "adjust.tasks.t0.cpu"),
        ({"remaining_s": "long"}, "adjust.remaining_s"),
    ],
)
def test_what_is_wrong_is_named(section: Any, field: str) -> None:
    with pytest.raises(ProblemError) as raised:
        read_terms(section)
    assert raised.value.field == field
