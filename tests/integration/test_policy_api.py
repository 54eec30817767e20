"""The versions of an evolving policy by the API: what the scheduler says, and what is said where there is none."""

from __future__ import annotations

from rest_api import Api

from ces_common import subjects
from ces_common.messages.policies import PolicyAnswer


async def test_the_scheduler_is_asked_and_where_there_is_none_that_is_said(api: Api) -> None:
    answer = (await api.http.get("/v1/policy")).json()
    assert answer["evolves"] is False
    assert answer["remark"].startswith("no scheduler is there")

    async def say(_: object) -> bytes:
        return PolicyAnswer(evolves=True, live="v2", former="base").encode()

    await api.bus.serve(subjects.rpc("scheduler", "policy"), say)
    answer = (await api.http.get("/v1/policy")).json()
    assert (answer["live"], answer["former"], answer.get("remark")) == ("v2", "base", None)


async def test_an_answer_that_cannot_be_read_is_none(api: Api) -> None:
    async def say(_: object) -> bytes:
        return b'{"versions": 7}'

    await api.bus.serve(subjects.rpc("scheduler", "policy"), say)
    assert (await api.http.get("/v1/policy")).json()["remark"].startswith("the scheduler does not answer")
