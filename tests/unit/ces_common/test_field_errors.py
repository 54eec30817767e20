"""Findings about fields are said in plain words, never in pydantic's nor as regular expressions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from ces_common.field_errors import plain_problem
from ces_common.jobfile import JobFile
from ces_common.states import JobState

GROUP = {"name": "w", "command": ["true"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Ring"}, "use 1 to 63 lower-case letters, digits and '-', the first and the last a letter or digit"),
        ({"priority": 101}, "must be at most 100"),
        ({"priority": -1}, "must be at least 0"),
        ({"priority": "high"}, "must be a whole number"),
        ({"priority": 1.5}, "must be a whole number"),
        ({"disconnect": "no"}, "must be 'stop', 'keep' or a duration like 5m"),
        ({"tasks": []}, "must have at least 1 entries, has 0"),
        ({"tasks": [GROUP | {"name": f"g{i}"} for i in range(65)]}, "must have at most 64 entries, has 65"),
        ({"tasks": "w"}, "must be a list"),
        ({"tasks": [3]}, "must hold fields with values"),
        ({"tasks": [{"name": "w", "command": "true"}]}, "must be a list"),
        ({"tasks": [{"name": "w", "script": 3}]}, "must be text"),
        ({"tasks": [{"name": "w", "script": ""}]}, "must have at least 1 characters"),
        ({"tasks": [GROUP | {"env": {"1A": "x"}}]}, "use letters, digits and '_', the first no digit"),
        ({"tasks": [GROUP | {"env": [3]}]}, "must hold fields with values"),
        ({"tasks": [GROUP | {"constraints": {"arch": "X 86"}}]}, "use 1 to 32 lower-case letters, digits and '_'"),
        ({"tasks": [{"command": ["true"]}]}, "is missing; add it"),
        ({"colour": "red"}, "unknown field; remove it, or correct its spelling"),
    ],
)
def test_a_wrong_job_file(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        JobFile.model_validate({"name": "ring", "tasks": [GROUP], **change})
    assert plain_problem(refused.value.errors()[0]).startswith(said)


class Parameters(BaseModel):
    since: AwareDatetime = datetime.fromisoformat("2030-01-01T12:00:00+00:00")
    seconds: Annotated[float, Field(gt=0, lt=5)] = 1
    follow: bool = False
    state: JobState = JobState.QUEUED


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"since": "yesterday"}, "must be a time with its time zone"),
        ({"since": "2030-01-01T12:00:00"}, "must be a time with its time zone"),
        ({"seconds": 0}, "must be more than 0"),
        ({"seconds": 5}, "must be less than 5"),
        ({"seconds": "long"}, "must be a number"),
        ({"follow": "perhaps"}, "must be true or false"),
        ({"state": "asleep"}, "must be 'queued', 'planned'"),
    ],
)
def test_a_wrong_parameter(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Parameters.model_validate(parameters)
    assert plain_problem(refused.value.errors()[0]).startswith(said)


def test_the_words_of_own_validators_stay() -> None:
    with pytest.raises(ValidationError) as refused:
        JobFile.model_validate({"name": "ring", "tasks": [GROUP, GROUP]})
    assert plain_problem(refused.value.errors()[0]) == "tasks: the group name 'w' is used twice"
