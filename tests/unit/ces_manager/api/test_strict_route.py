"""Requests that say something else than they mean are refused with field and remedy, and what is so already is said."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from threading import Event, get_ident
from typing import Any, cast

import httpx
import pytest
from fastapi.routing import APIRoute
from manager_world import World, ring

from ces_common.jobfile import JobFile
from ces_common.queuefile import QueueFile
from ces_manager.access.identities import Identities
from ces_manager.api import cluster, jobs, strict_route
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.database import Database
from ces_manager.measurements import Measurements

TOKEN = "0123456789abcdef"
JSON = {"Content-Type": "application/json"}
JOB = b'{"name": "ring", "tasks": [{"name": "w", "command": ["true"]}]}'


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx.AsyncClient]:
    database = Database(world.uow, world.clock)
    parts = {
        "trace_ratio": 0.0,
        "database": database,
        "identities": Identities(database, TOKEN),
        "measurements": Measurements(),
        "queue": QueueFile(),
        "failure_detector": world.failure_detector,
    }
    app = make_app(cast(Context, type("Parts", (), parts)), lambda: None)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://manager", headers=headers
    ) as client:
        yield client
    database.close()


async def refused(http: httpx.AsyncClient, method: str, path: str, status: int, **request: Any) -> dict[str, Any]:
    answer = await http.request(method, path, **request)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem: dict[str, Any] = answer.json()
    return problem


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (
            {"Content-Type": "text/plain"},
            "the body is sent as text/plain; send JSON, with the header Content-Type: ",
        ),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "the body is sent as application/x-www-form-urlenc"),
        ({}, "the request does not say what its body is; send JSON"),
    ],
)
async def test_another_media_type_is_refused(http: httpx.AsyncClient, headers: dict[str, str], said: str) -> None:
    problem = await refused(http, "POST", "/v1/jobs", 415, content=JOB, headers=headers)
    assert problem["title"] == "Unsupported media type"
    assert problem["detail"].startswith(said)
    assert "Content-Type: application/json" in problem["detail"]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/vnd.ces+json"])
async def test_json_is_taken_by_each_of_its_names(http: httpx.AsyncClient, kind: str) -> None:
    assert (await http.post("/v1/jobs", content=JOB, headers={"Content-Type": kind})).status_code == 201


@pytest.mark.parametrize("body", [b"{", b"name: ring", b"\xff\xfe{", b"[" * 100_000])
async def test_what_is_no_json_is_malformed(http: httpx.AsyncClient, body: bytes) -> None:
    problem = await refused(http, "POST", "/v1/jobs", 400, content=body, headers=JSON)
    assert problem["detail"].startswith("the body is no JSON: ")


YAML = {"Content-Type": "application/yaml; charset=utf-8"}
YAML_JOB = b"name: ring\ntasks:\n- name: w  # one worker\n  command: ['true']\n"


@pytest.mark.parametrize("kind", sorted(strict_route.YAML))
async def test_yaml_is_taken_as_the_same_job(http: httpx.AsyncClient, kind: str) -> None:
    keyed = {"Content-Type": kind, "Idempotency-Key": "once"}
    first = await http.post("/v1/jobs", content=YAML_JOB, headers=keyed)
    assert first.status_code == 201
    same = await http.post("/v1/jobs", content=JOB, headers=JSON | {"Idempotency-Key": "once"})
    assert same.json()["id"] == first.json()["id"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"name: [", 400, "line 1: "),
        (b"name: ring\n\tx: 1", 400, "line 2: "),
        (b"name: \xff", 400, "the body is no YAML"),
        (b"name: \0", 400, "the body is no YAML"),
        (b"x: !!python/object/apply:os.getcwd []", 400, "line 1: "),
        (b"a: &a [x]\nb: [*a, *a]", 400, "line 2: an alias"),
        (b"name: ring\nname: other", 422, "given twice, on lines 1 and 2"),
        (b"name: 3\ntasks: []", 422, "name"),
        (b"x: " + b"[" * 1000 + b"]" * 1000, 400, "deep within each other"),
        (b"#" * (strict_route.MAX_YAML + 1), 413, "send a larger one as JSON"),
        (b"d: 2026-13-45", 400, "cannot be read"),
        *(
            (f"x: {odd}".encode(), 400, "cannot be read")
            for odd in ("!!int ''", "!!bool foo", "!!timestamp x", "!!float ''")
        ),
        (b"x: " + b":".join([b"1"] * 300) + b".5", 400, "cannot be read"),
    ],
)
async def test_yaml_that_cannot_be_taken_is_refused_with_its_place(
    http: httpx.AsyncClient, world: World, body: bytes, status: int, said: str
) -> None:
    problem = await refused(http, "POST", "/v1/jobs", status, content=body, headers=YAML)
    assert said in problem["detail"]
    assert not world.snapshot().jobs


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/nodes/join", "/v1/nodes/renew", "/v1/tokens"])
async def test_yaml_is_taken_where_files_are_sent_alone(http: httpx.AsyncClient, path: str) -> None:
    problem = await refused(http, "POST", path, 415, content=b"code: x", headers=YAML)
    assert "YAML" not in problem["detail"]


async def test_a_key_given_twice_is_named_with_both_lines(http: httpx.AsyncClient, world: World) -> None:
    body = b'{"name": "ring",\n"tasks": [{"name": "w",\n"command": ["true"], "name": "v"}]}'
    problem = await refused(http, "POST", "/v1/jobs", 422, content=body, headers=JSON)
    said = "the key 'name' is given twice, on lines 2 and 3: keep one of them"
    assert problem["errors"] == [{"field": "name", "problem": said}]
    assert not world.snapshot().jobs


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br", "gzip, identity"])
async def test_a_compressed_body_is_refused(http: httpx.AsyncClient, encoding: str) -> None:
    headers = JSON | {"Content-Encoding": encoding}
    problem = await refused(http, "POST", "/v1/jobs", 415, content=gzip.compress(b" " * 10**8), headers=headers)
    assert problem["detail"] == f"the body is sent as {encoding}; send it as it is, without Content-Encoding"
    assert (await http.post("/v1/jobs", content=JOB, headers=JSON | {"Content-Encoding": "identity"})).is_success


async def test_others_are_answered_while_a_body_is_read(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, threads = Event(), list[int]()
    read, check = strict_route.read_json, JobFile._check_count

    def slowly(body: bytes) -> Any:
        assert answered.wait(30), "nobody else is answered meanwhile"
        return read(body)

    def noted(*arguments: Any) -> None:
        threads.append(get_ident())
        check(*arguments)

    monkeypatch.setattr(strict_route, "read_json", slowly)
    monkeypatch.setattr(JobFile, "_check_count", noted)
    posted = asyncio.create_task(http.post("/v1/jobs", content=JOB, headers=JSON))
    await asyncio.sleep(0.05)
    assert (await http.get("/healthz")).status_code == 200
    answered.set()
    assert (await posted).status_code == 201
    assert threads[0] != get_ident(), "it is checked where others would wait"


@pytest.mark.parametrize(
    "more",
    [
        {"flows": {"edges": [{}] * 4096}},
        {"flows": {"edges": [{}] * 200_000}},
        {"tasks": [{"name": "w", "command": ["x"], "constraints": {"labels": {str(i): 1 for i in range(50_000)}}}]},
    ],
)
async def test_a_body_full_of_mistakes_gets_a_short_answer(http: httpx.AsyncClient, more: dict[str, Any]) -> None:
    problem = await refused(http, "POST", "/v1/jobs", 422, json=json.loads(JOB) | more)
    assert 1 <= len(problem["errors"]) <= 51
    assert len(str(problem)) < 16_000
    if len(problem["errors"]) == 51:
        assert re.fullmatch(r"\d+ more mistakes are not listed", problem["errors"][-1]["problem"])


def numbers_and_texts() -> list[Any]:
    routes = [route for route in (*jobs.router.routes, *cluster.router.routes) if isinstance(route, APIRoute)]
    assert len(routes) > 20
    return [
        pytest.param(field, id=f"{route.path} {field.name}")
        for route in routes
        for kind in ("path_params", "query_params", "header_params")
        for field in getattr(route.dependant, kind)
    ]


@pytest.mark.parametrize("field", numbers_and_texts())
def test_every_parameter_has_bounds(field: Any) -> None:
    for value in (10**30, -(10**30), "1e300", "nan", "inf", "a" * 4096):
        taken, errors = field.validate(str(value))
        assert errors or (isinstance(taken, str) and len(taken) < 256), f"{str(value)[:20]} is taken"


async def test_no_body_where_one_is_needed_is_said(http: httpx.AsyncClient) -> None:
    problem = await refused(http, "POST", "/v1/jobs", 422)
    assert problem["errors"] == [{"field": "body", "problem": "is missing; add it"}]


@pytest.mark.parametrize(
    ("method", "path", "field", "said"),
    [
        ("GET", "/v1/jobs?stat=running", "query.stat", "unknown query parameter; this address knows state, name, lim"),
        ("GET", "/v1/nodes?state=ready", "query.state", "unknown query parameter; this address knows limit, cursor"),
        ("GET", "/v1/topology?limit=3", "query.limit", "unknown query parameter; this address knows none"),
        ("POST", "/v1/nodes/a/cordon?force=1", "query.force", "unknown query parameter"),
        ("GET", "/v1/jobs?cursor=garbage", "cursor", "is no cursor of this list; give the next of the page before"),
        ("GET", "/v1/jobs?cursor=01arz3ndektsv4rrffq69g5fav", "cursor", "is no cursor of this list"),
        ("GET", "/v1/nodes?cursor=!!", "cursor", "is no cursor of this list"),
        ("GET", "/v1/nodes?cursor=", "cursor", "is no cursor of this list"),
        ("GET", "/v1/links?cursor=a", "cursor", "is no cursor of this list"),
        ("GET", "/v1/links?cursor=-1", "cursor", "is no cursor of this list"),
        ("GET", "/v1/jobs?limit=501", "query.limit", "must be at most 500"),
        ("GET", "/v1/jobs?limit=many", "query.limit", "must be a whole number"),
        ("GET", "/v1/jobs?state=asleep", "query.state", "must be 'queued', "),
    ],
)
async def test_a_wrong_query_names_its_field(
    http: httpx.AsyncClient, method: str, path: str, field: str, said: str
) -> None:
    problem = await refused(http, method, path, 422)
    (error,) = problem["errors"]
    assert error["field"] == field
    assert error["problem"].startswith(said)


async def test_cursors_of_pages_are_taken(http: httpx.AsyncClient) -> None:
    for i in range(3):
        await http.post("/v1/jobs", content=JOB.replace(b"ring", b"ring-%d" % i), headers=JSON)
    for path in ("/v1/jobs", "/v1/nodes", "/v1/links"):
        first = (await http.get(path, params={"limit": 1})).json()
        second = (await http.get(path, params={"limit": 1, "cursor": first["next"]})).json()
        assert first["items"] != second["items"] != []


async def test_fields_are_wrong_in_plain_words(http: httpx.AsyncClient) -> None:
    body = {"name": "Ring", "priority": 101, "tasks": [{"name": "w", "command": ["true"], "colour": "red"}]}
    problem = await refused(http, "POST", "/v1/jobs", 422, json=body)
    assert {error["field"]: error["problem"] for error in problem["errors"]} == {
        "name": "use 1 to 63 lower-case letters, digits and '-', the first and the last a letter or digit",
        "priority": "must be at most 100",
        "tasks.0.colour": "unknown field; remove it, or correct its spelling",
    }


async def test_what_is_so_already_is_said(http: httpx.AsyncClient, world: World) -> None:
    async def remark(method: str, path: str) -> str | None:
        answer = await http.request(method, path)
        assert answer.status_code in (200, 202), answer.text
        said: str | None = answer.json()["remark"]
        return said

    job = world.submit(ring())
    world.run(job, ["a", "b", "c"])
    assert await remark("POST", f"/v1/jobs/{job}/resume") == "job ring is running already"
    assert await remark("POST", f"/v1/jobs/{job}/pause") is None
    assert await remark("POST", f"/v1/jobs/{job}/pause") == "job ring is paused already"
    assert await remark("GET", f"/v1/jobs/{job}") is None
    assert await remark("DELETE", f"/v1/jobs/{job}") is None
    said = await remark("DELETE", f"/v1/jobs/{job}")
    assert said == "job ring is cancelled already; its workers are being stopped"
    world.confirm(job)
    said = await remark("DELETE", f"/v1/jobs/{job}")
    assert said == "job ring is cancelled already; nothing of it is left to stop"
    assert await remark("POST", "/v1/nodes/a/uncordon") == "node a is not cordoned"
    assert await remark("POST", "/v1/nodes/a/cordon") is None
    assert await remark("POST", "/v1/nodes/a/cordon") == "node a is cordoned already"
    assert await remark("POST", "/v1/nodes/a/uncordon") is None
    assert await remark("POST", "/v1/nodes/a/drain") is None
    assert (
        await remark("POST", "/v1/nodes/a/drain")
        == "node a is drained already: cordoned, and no job has anything there"
    )


async def test_names_of_jobs_may_repeat(http: httpx.AsyncClient) -> None:
    ids = {(await http.post("/v1/jobs", content=JOB, headers=JSON)).json()["id"] for _ in range(2)}
    listed = (await http.get("/v1/jobs", params={"name": "ring"})).json()["items"]
    assert {job["id"] for job in listed} == ids
    assert len(ids) == 2
