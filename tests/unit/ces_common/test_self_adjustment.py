"""What an application file may say of being changed by CES."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.jobfile import JobFile
from ces_common.self_adjustment import SelfAdjustment


def file(**more: Any) -> dict[str, Any]:
    tasks = [{"name": "w", "command": ["true"]}]
    goals = {"objective": {"balance": 1.0}, "restart": {"scope": "task"}}
    return {"name": "app", "tasks": tasks} | goals | more


def test_nothing_but_the_word_is_needed() -> None:
    assert JobFile.model_validate(file(adjust={})).adjust == SelfAdjustment(cooldown=60, least_gain=0.001)
    assert JobFile.model_validate(file()).adjust is None


def test_times_are_written_as_elsewhere() -> None:
    read = JobFile.model_validate(file(adjust={"budget": 600, "reserve": 300, "cooldown": "2m"}))
    assert read.adjust == SelfAdjustment(budget=600, reserve=300, cooldown=120)
    assert JobFile.model_validate_json(read.model_dump_json()) == read


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"restart": {}}, "give restart: {scope: task} as well"),
        ({"objective": None}, "give requests as well, or an objective other than"),
        ({"objective": {"balance": 0.5, "bandwidth": 0.5}}, "give requests as well, or an objective other than"),
        ({"adjust": {"reserve": 3}}, "reserve: give a budget as well"),
        ({"adjust": {"budget": 2, "reserve": 3}}, "reserve: is a part of the budget, so at most 2"),
        ({"adjust": {"budget": -1}}, "greater than or equal to 0"),
        ({"adjust": {"cooldown": "3d"}}, "less than or equal to 3600"),
        ({"adjust": {"least_gain": 0}}, "greater than or equal to 0.000001"),
        ({"adjust": {"moves": 3}}, "moves"),
    ],
)
def test_a_refusal_names_the_field_and_a_remedy(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        JobFile.model_validate(file(adjust={}) | changed)
    assert words in str(refused.value)
    assert "adjust" in str(refused.value)
