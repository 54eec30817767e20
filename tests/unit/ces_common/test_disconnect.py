"""How long workers go on while their node hears nothing."""

from __future__ import annotations

import math

import pytest
from pydantic import TypeAdapter, ValidationError

from ces_common.disconnect import LONGEST, Disconnect, outlives_s
from ces_common.messages.api import JobView
from ces_common.messages.base import Message
from ces_common.messages.desired import DesiredWorker
from ces_common.messages.records import JobRecord

FIELD: TypeAdapter[str] = TypeAdapter(Disconnect)


@pytest.mark.parametrize(
    ("written", "kept", "seconds"),
    [
        ("stop", "stop", 0.0),
        ("keep", "keep", math.inf),
        ("5m", "5m", 300.0),
        ("300s", "5m", 300.0),
        (90, "90s", 90.0),
        ("1.5h", "90m", 5400.0),
        (LONGEST - 1, "2591999s", LONGEST - 1.0),
    ],
)
def test_what_is_written_is_kept_in_its_shortest_form(written: object, kept: str, seconds: float) -> None:
    assert FIELD.validate_python(written) == kept
    assert FIELD.validate_python(kept) == kept
    assert len(kept) <= 8, "the width of its column"
    assert outlives_s(kept) == seconds


@pytest.mark.parametrize("model", [JobRecord, DesiredWorker, JobView])
def test_a_record_that_does_not_say_it_is_of_a_release_that_ended_workers_with_the_lease(model: type[Message]) -> None:
    assert model.model_fields["disconnect"].default == "stop"


def test_records_say_it_also_where_it_is_the_default() -> None:
    """Else a reader with another default would take it for another."""
    worker = DesiredWorker(allocation="a", incarnation=1, job="j", job_name="j", task="t", rank=0, cpu=1, memory=1)
    assert b'"disconnect":"stop"' in worker.encode()


@pytest.mark.parametrize("written", ["perhaps", "", None, "0s", "-5m", "31d", "5 parsecs", True, ["stop"]])
def test_anything_else_is_refused_with_what_to_write(written: object) -> None:
    with pytest.raises(ValidationError, match=r"'stop'.*'keep'"):
        FIELD.validate_python(written)
