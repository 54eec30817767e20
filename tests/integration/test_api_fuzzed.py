"""Requests that schemathesis makes of the API's own description, with each role and without a token: whatever comes,
answers are as described, nothing fails inside, and nobody changes what is not theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rest_api import JOB, Api, join
from schemathesis import APIOperation, Case, CheckContext, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from ces_common import subjects
from ces_common.jobfile import JobFile
from ces_common.messages.adjustments import AdjustmentAnswer
from ces_common.messages.api import Problem
from ces_common.messages.base import Message
from ces_common.messages.decompositions import DecompositionAnswer
from ces_common.messages.policies import PolicyAnswer
from ces_common.messages.queries import PlanAnswer, QueueAnswer
from ces_common.roles import Role
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.api.problems import MEDIA_TYPE

MINE, OTHER = "red", "blue"
EXAMPLES = 6  # of each address and kind of request
JOBS = ("POST /v1/jobs", "POST /v1/plans")
APPLY = "POST /v1/applicants"
CASES_AND_ROLES = 300  # seconds; far more than it takes


def a_refusal_is_a_problem(context: CheckContext, response: Response, case: Case) -> None:
    """Also where it is the framework, or something before any route, that refuses."""
    if response.status_code >= 400:
        assert response.headers["content-type"] == [MEDIA_TYPE], response.headers
        assert Problem.model_validate_json(response.content or b"").status == response.status_code


CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    a_refusal_is_a_problem,
]


def drawn(strategy: st.SearchStrategy[Case]) -> list[Case]:
    """The same ones each time."""
    found: list[Case] = []

    @given(strategy)
    @settings(
        max_examples=EXAMPLES, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found


@st.composite
def nearly_good_jobs(draw: st.DrawFn, operation: APIOperation) -> Case:
    """A good job, one field of which is as the description allows: of wholly drawn ones nearly none is taken."""
    case = draw(operation.as_strategy(GenerationMode.POSITIVE))
    given = case.body if isinstance(case.body, dict) else {}
    field = draw(st.sampled_from(sorted(JobFile.model_fields)))
    case.body = JOB | ({field: given[field]} if field in given else {})
    return case


def requested(operation: APIOperation) -> Iterator[Case]:
    for mode in GenerationMode:
        yield from drawn(operation.as_strategy(mode))
    if operation.label in JOBS:
        yield from drawn(nearly_good_jobs(operation))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    description = make_app(cast(Context, None), lambda: None).openapi()
    schema = schemathesis.openapi.from_dict(description)
    return [case for found in schema.get_all_operations() for case in requested(found.ok())]


@dataclass
class Town:
    """An API with a job of each tenant, a node and a token to revoke; streams end with what there is. ``known``: what
    may stand in an address, so that not only refusals are seen."""

    api: Api
    known: Mapping[str, Sequence[str]]

    @property
    def foreign(self) -> str:
        return self.known["job"][1]

    async def asked(self, cases: Sequence[Case], token: str | None) -> Counter[tuple[str, int]]:
        """How often each address gave which status. Raises what the checks find."""
        given: Counter[tuple[str, int]] = Counter()
        async with httpx.AsyncClient(base_url=self.api.http.base_url, timeout=20) as http:
            for number, case in enumerate(cases):
                if number % 2:
                    named = {
                        part: self.known[part][number // 2 % len(self.known[part])] for part in case.path_parameters
                    }
                    case.path_parameters = named
                answer = await http.send(self._request(case, token))
                case.validate_response(answer, checks=CHECKS)
                given[case.operation.label, answer.status_code] += 1
        return given

    def _request(self, case: Case, token: str | None) -> httpx.Request:
        sent = requests.Request(**case.as_transport_kwargs(base_url=str(self.api.http.base_url))).prepare()
        headers = {name: value for name, value in sent.headers.items() if name.lower() != "authorization"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.Request(str(sent.method), str(sent.url), headers=headers, content=sent.body)

    async def look(self, *paths: str) -> list[Any]:
        return [(await self.api.http.get(path)).json() for path in paths]


@pytest.fixture
async def town(api: Api) -> Town:
    jobs = [(await api.submit(name=f"of-{tenant}", tenant=tenant))["id"] for tenant in (MINE, OTHER)]
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token)).status_code == 200
    spare = {"name": "spare", "role": "operator"}
    assert (await api.http.post("/v1/tokens", json=spare)).status_code == 201
    for tenant in (MINE, OTHER):
        put = await api.http.put(f"/v1/secrets/hush?tenant={tenant}", json={"value": "aHVzaA=="})
        assert put.status_code == 200
    await answers(api, "queue", QueueAnswer(version=1))
    await answers(api, "policy", PolicyAnswer())
    await answers(api, "decompose", DecompositionAnswer(refusal="it cannot be"))
    await answers(api, "adjust", AdjustmentAnswer(refusal="it cannot be"))
    await answers(api, "plan", PlanAnswer(feasible=False, version=1, solver="search", held_by=jobs))
    api.stopping.set()
    known = {"job": jobs, "node": ["n1"], "src": ["n1"], "dst": ["n1"], "token": ["spare"], "secret": ["hush"]}
    known["session"], known["user"] = ["none"], ["cam"]
    audit = {"version": "1", "began_at": "2026-01-01T09:00:00Z", "took_s": 1.0, "events": 0}
    known["audit"] = [(await api.http.post("/v1/audits", json=audit)).json()["id"]]
    return Town(api, known)


async def answers(api: Api, question: str, answer: Message) -> None:
    """What a scheduler would say."""

    async def say(_: object) -> bytes:
        return answer.encode()

    await api.bus.serve(subjects.rpc("scheduler", question), say)


async def token_of(api: Api, role: Role) -> str:
    asked = {"name": f"a-{role}", "role": role} | ({"tenants": [MINE]} if role.has_tenants else {})
    token: str = (await api.http.post("/v1/tokens", json=asked)).json()["token"]
    return token


SECRETS = "/v1/secrets"
OF_THE_CLUSTER = ("/v1/nodes", "/v1/topology", "/v1/tokens")


@pytest.mark.timeout(CASES_AND_ROLES)
@pytest.mark.parametrize("role", list(Role))
async def test_whatever_a_role_asks_is_answered_as_described(town: Town, cases: list[Case], role: Role) -> None:
    token = await token_of(town.api, role)
    changes_the_cluster = role.includes(Role.OPERATOR)
    theirs = (f"/v1/jobs/{town.foreign}", SECRETS, *(() if changes_the_cluster else OF_THE_CLUSTER))
    if not role.includes(Role.SUBMITTER):
        theirs += ("/v1/jobs",)
    before = await town.look(*theirs)
    given = await town.asked(cases, token)
    if not changes_the_cluster:
        assert of_others(await town.look(*theirs)) == of_others(before)
    for label in {case.operation.label for case in cases}:
        assert given[label, 401] == 0 or "join" in label, label
    assert (given["POST /v1/jobs", 201] > 0) is role.includes(Role.SUBMITTER)
    assert (given["POST /v1/nodes/{node}/cordon", 200] > 0) is role.includes(Role.OPERATOR)
    assert (given["DELETE /v1/tokens/{token}", 200] > 0) is role.includes(Role.ADMIN)
    await answers_on(town.api)


@pytest.mark.timeout(CASES_AND_ROLES)
async def test_without_a_token_nothing_is_told_and_nothing_changes(town: Town, cases: list[Case]) -> None:
    everything = (SECRETS, "/v1/jobs", f"/v1/jobs/{town.foreign}", *OF_THE_CLUSTER)
    before = await town.look(*everything)
    given = await town.asked(cases, None)
    assert await town.look(*everything) == before
    refusals, applied = {400, 401, 403, 404, 422, 429}, {202, 409}  # devices that apply change nothing of all that
    assert {status for label, status in given if label != APPLY} <= refusals
    assert {status for label, status in given if label == APPLY} <= refusals | applied
    await answers_on(town.api)


async def answers_on(api: Api) -> None:
    assert (await api.http.get("/v1/whoami")).json()["role"] == Role.ADMIN
    assert (await api.submit(name="after"))["state"] == "queued"


def of_others(found: list[Any]) -> list[Any]:
    """All but the tenant's own secrets, and when tokens were last used."""

    def counts(item: dict[str, Any]) -> bool:
        return "updated_by" not in item or item["tenant"] != MINE

    return [
        [{**item, "last_used_at": None} for item in page["items"] if counts(item)] if "items" in page else page
        for page in found
    ]
