"""Secrets in the job file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.field_errors import plain_problem
from ces_common.jobfile import MAX_SECRETS, JobFile

NAMED = {"hub-token": {"from": "hub"}, "tls.key": {"from": "hub"}}


def job(secrets: Any) -> dict[str, Any]:
    return {"name": "j", "tasks": [{"name": "w", "replicas": 2, "command": ["true"], "secrets": secrets}]}


def test_each_task_of_the_group_has_them_and_a_file_is_written_as_it_was_read() -> None:
    read = JobFile.model_validate(job(NAMED))
    assert [task.secrets for task in read.expand_tasks()] == [{"hub-token": "hub", "tls.key": "hub"}] * 2
    written = json.loads(read.model_dump_json(exclude_unset=True))
    assert written == job(NAMED)
    assert JobFile.model_validate(written) == read


@pytest.mark.parametrize(
    ("secrets", "field", "said"),
    [
        ({"../up": {"from": "hub"}}, "tasks.0.secrets.../up.[key]", "use 1 to 63 letters, digits"),
        ({".hidden": {"from": "hub"}}, "tasks.0.secrets..hidden.[key]", "use 1 to 63 letters, digits"),
        ({"a/b": {"from": "hub"}}, "tasks.0.secrets.a/b.[key]", "use 1 to 63 letters, digits"),
        ({"a": {"from": "of another"}}, "tasks.0.secrets.a.from", "use 1 to 63 letters, digits"),
        ({"a": {}}, "tasks.0.secrets.a.from", "is missing; add it"),
        ({"a": {"from": "hub", "mode": 400}}, "tasks.0.secrets.a.mode", "unknown field"),
        ({"a": "hub"}, "tasks.0.secrets.a", "must hold fields with values"),
        ({f"s{i}": {"from": "hub"} for i in range(MAX_SECRETS + 1)}, "tasks.0.secrets", "must have at most 16 entries"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(secrets: Any, field: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        JobFile.model_validate(job(secrets))
    found = {".".join(map(str, error["loc"])): plain_problem(error) for error in refused.value.errors()}
    assert said in found[field]
