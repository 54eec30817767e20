"""Deadlines in a job file: short and in full, and every way to get one wrong, with the field and the remedy."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.deadline import Deadline
from ces_common.documents import read_yaml
from ces_common.field_errors import plain_problem
from ces_common.jobfile import JobFile

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
AT_SIX = datetime(2027, 3, 1, 18, tzinfo=UTC)
RIGID = {"name": "j", "duration": "1h", "tasks": [{"name": "w", "command": ["x"]}]}


def file(deadline: Any, **more: Any) -> JobFile:
    return JobFile.model_validate(RIGID | {"deadline": deadline} | more)


def read(text: str) -> Deadline:
    found = file(read_yaml(f"deadline: {text}")["deadline"]).deadline
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "at", "policy"),
    [
        ("2h", NOW + timedelta(hours=2), "refuse"),
        ("90", NOW + timedelta(seconds=90), "refuse"),
        ("2027-03-01T18:00:00Z", AT_SIX, "refuse"),
        ("2027-03-01T19:00:00+01:00", AT_SIX, "refuse"),
        ("'2027-03-01T18:00:00Z'", AT_SIX, "refuse"),
        ("{within: 2h, policy: best-effort}", NOW + timedelta(hours=2), "best-effort"),
        ("{at: 2027-03-01T18:00:00Z, policy: refuse}", AT_SIX, "refuse"),
    ],
)
def test_a_duration_a_time_or_both_written_out(text: str, at: datetime, policy: str) -> None:
    found = read(text)
    assert (found.due_at(NOW), found.policy) == (at, policy)
    again = file(found.model_dump(mode="json"))
    assert again.deadline == found
    assert JobFile.model_validate(json.loads(again.model_dump_json())) == again


@pytest.mark.parametrize(
    ("deadline", "field", "said"),
    [
        ("0s", "deadline.within", "must be more than zero, and 3650d at most"),
        ("4000d", "deadline.within", "must be more than zero, and 3650d at most"),
        ("soon", "deadline", "'soon' is neither a duration like 2h nor a time like 2030-01-01T12:00:00Z"),
        ({"within": "soon"}, "deadline.within", "'soon' is no duration; write it like 45m or 2h"),
        ("2027-03-01T18:00:00", "deadline.at", "must be a time with its time zone"),
        ("2027-03-01", "deadline.at", None),
        ({"at": 5}, "deadline.at", "must be a time with its time zone, like 2030-01-01T12:00:00Z; write a duration"),
        ({}, "deadline", "give within: a duration after submission, or at: a time with its zone"),
        ({"within": "1h", "at": "2027-03-01T18:00:00Z"}, "deadline", "give within: a duration after submission"),
        ({"within": "1h", "policy": "hope"}, "deadline.policy", "must be 'refuse' or 'best-effort'"),
    ],
)
def test_what_is_no_deadline_is_refused(deadline: Any, field: str, said: str | None) -> None:
    with pytest.raises(ValidationError) as refused:
        file(deadline)
    (error,) = refused.value.errors()
    assert ".".join(map(str, error["loc"])) == field
    assert said is None or plain_problem(error).startswith(said)


@pytest.mark.parametrize(("at", "said"), [("2027-03-01T12:00:00Z", "is past"), ("2047-01-01T00:00:00Z", "3650d ahead")])
def test_a_time_is_to_come_and_not_too_far_ahead(at: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(at).due_at(NOW)


def test_how_much_there_is_to_do_must_be_known() -> None:
    with pytest.raises(ValidationError, match="deadline: give duration as well"):
        file("2h", duration=None)
    elastic: dict[str, Any] = {"group": "w", "workers": {"max": 4}}
    with pytest.raises(ValidationError, match=r"deadline: give elastic\.speed\.total as well"):
        file("2h", elastic=elastic)
    assert file("2h", elastic=elastic | {"speed": {"total": 100}}, duration=None).deadline is not None
