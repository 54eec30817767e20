"""What is asked of another region, whose answer is read as anybody's."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from ces_common.messages.api import JobFlowsView
from ces_common.messages.regions import Decision
from ces_common.states import JobState
from ces_manager.api.context import Context
from ces_manager.api.other_regions import remote_flows
from ces_manager.errors import Unavailable

RUN = Decision(job="01J00000000000000000000001", attempt=1, region="south", remote="01J0000000000000000REMOTE1")


def answering(said: bytes) -> Context:
    async def request(subject: str, data: bytes, timeout_s: float, largest: int) -> bytes:
        assert subject.endswith("federation.flows")
        assert Decision.model_validate_json(data) == RUN
        return said

    return cast(Context, SimpleNamespace(bus=SimpleNamespace(request=request)))


async def test_flows_are_told_of_the_job_as_it_is_called_here() -> None:
    there = JobFlowsView(id=RUN.remote, name="x", state=JobState.RUNNING, at=datetime.now(UTC), flows=[])
    assert await remote_flows(answering(there.encode()), RUN) == there.model_copy(update={"id": RUN.job})


@pytest.mark.parametrize("said", [b"", b"no JSON", b'{"id": "x", "flows": 7}'])
async def test_flows_that_cannot_be_read_are_told_of_as_an_answer_that_is_missing(said: bytes) -> None:
    with pytest.raises(Unavailable, match="region south, where the job runs, answers with what cannot be read"):
        await remote_flows(answering(said), RUN)
