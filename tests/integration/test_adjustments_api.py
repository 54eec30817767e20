"""What would be adjusted of a running job, over the API: who is refused and why, and what the scheduler answers."""

from __future__ import annotations

import asyncio
from typing import Any

from rest_api import Api
from sqlalchemy import update

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db.tables import JobRow
from ces_common.messages.adjustments import AdjustmentAnswer, AdjustmentProposal, AdjustmentQuery, Certificate
from ces_common.states import JobState
from ces_manager.api.context import ADJUSTMENTS_AT_ONCE

PROPOSAL = AdjustmentProposal(version=7, certificate=Certificate(text="Nothing gains more.", proven=True, moves=3))
GOALS = {"objective": {"balance": 1.0}}


async def running(api: Api, **fields: Any) -> str:
    """The address of what would be adjusted of a job that the database says is running."""
    job: str = (await api.submit(**fields))["id"]
    runs = update(JobRow).where(JobRow.id == job).values(state=JobState.RUNNING)
    await api.database.write(lambda tx: tx.session.execute(runs))
    return f"/v1/jobs/{job}/adjustment"


async def test_the_scheduler_is_asked_and_its_proposal_told(api: Api) -> None:
    heard: list[AdjustmentQuery] = []

    async def say(message: Message) -> bytes:
        heard.append(AdjustmentQuery.model_validate_json(message.data))
        return AdjustmentAnswer(proposal=PROPOSAL).encode()

    await api.bus.serve(subjects.rpc("scheduler", "adjust"), say)
    path = await running(api, **GOALS)
    answer = await api.http.get(f"{path}?moves=1")
    assert AdjustmentProposal.model_validate(answer.json()) == PROPOSAL
    assert answer.json()["adjustment"] is None
    (query,) = heard
    assert (query.job in path, query.moves, query.restarts) == (True, 1, {})
    assert (await api.http.get(f"{path}?moves=4")).status_code == 422


async def test_who_has_nothing_to_be_adjusted_is_told_why(api: Api) -> None:
    plain = await api.refused("GET", await running(api), 409)
    assert "its file has neither `requests` nor `objective`; submit it with one of them" in plain["detail"]
    job = (await api.submit(**GOALS))["id"]
    waiting = await api.refused("GET", f"/v1/jobs/{job}/adjustment", 409)
    assert waiting["detail"].endswith("is queued; only a running job is adjusted")
    await api.refused("GET", "/v1/jobs/none/adjustment", 404)


async def test_one_question_of_an_identity_at_a_time(api: Api) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def say(_: Message) -> bytes:
        asked.set()
        await may_answer.wait()
        return AdjustmentAnswer(proposal=PROPOSAL).encode()

    await api.bus.serve(subjects.rpc("scheduler", "adjust"), say)
    path = await running(api, **GOALS)
    first = asyncio.create_task(api.http.get(path))
    await asyncio.wait_for(asked.wait(), 30)
    assert (await api.refused("GET", path, 429))["detail"].startswith("a job is being looked at for you")
    may_answer.set()
    assert (await first).status_code == 200
    assert (await api.http.get(path)).status_code == 200


async def test_what_the_scheduler_refuses_or_cannot_say_is_told(api: Api) -> None:
    path = await running(api, **GOALS)
    nobody = await api.refused("GET", path, 503)
    assert "no scheduler is there, or an older one" in nobody["detail"]
    told = AdjustmentAnswer(refusal="there are 99 tasks").encode()

    async def say(_: Message) -> bytes:
        return told

    await api.bus.serve(subjects.rpc("scheduler", "adjust"), say)
    assert (await api.refused("GET", path, 409))["detail"] == "there are 99 tasks"
    told = AdjustmentAnswer(busy=True, refusal="another job is being looked at").encode()
    await api.refused("GET", path, 429)
    told = b'{"proposal": 7}'
    assert "cannot be read" in (await api.refused("GET", path, 503))["detail"]
    codes = [(await api.http.get(path)).status_code for _ in range(ADJUSTMENTS_AT_ONCE)]
    assert codes[-1] == 429, "not more than so many at once"
