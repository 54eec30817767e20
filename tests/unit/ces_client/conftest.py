"""A small manager in memory, and sample answers of its API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import stamina
import stamina.instrumentation

from ces_client import watch as watching
from ces_client.cli import session
from ces_client.client import Client
from ces_common.messages.api import FlowView, JobView, NodeView, TaskView
from ces_common.messages.events import Reason
from ces_common.messages.identities import AccessTokenView
from ces_common.messages.membership import Applicant
from ces_common.roles import Role

URL = "http://manager:8080"
SUBMITTED = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
JOB = "01JDPB8Q3M7V5Y2C4Z6K8N0R1T"
Responder = Callable[[httpx.Request], httpx.Response]


class FakeManager:
    """Answers by (method, path): one answer for good, or a list of answers in turn, of which the last stays."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self._answers: dict[tuple[str, str], list[Responder]] = {}

    def on(self, method: str, path: str, *answers: Any, status: int = 200) -> None:
        self._answers[(method, path)] = [self._responder(answer, status) for answer in answers]

    def sent(self, method: str, path: str) -> list[httpx.Request]:
        return [one for one in self.requests if (one.method, one.url.path) == (method, f"/v1/{path}")]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        left = self._answers.get((request.method, request.url.path.removeprefix("/v1/")))
        if left is None:
            return problem(404, "Not found", f"nothing is at {request.url.path}")
        return (left.pop(0) if len(left) > 1 else left[0])(request)

    @staticmethod
    def _responder(answer: Any, status: int) -> Responder:
        if isinstance(answer, Exception):

            def fail(_: httpx.Request) -> httpx.Response:
                raise answer

            return fail
        if callable(answer):
            return answer
        if isinstance(answer, httpx.Response):
            return lambda _: httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        if isinstance(answer, list):
            body: Any = {"items": [as_json(item) for item in answer], "next": None}
        else:
            body = as_json(answer)
        return lambda _: httpx.Response(status, json=body)


def as_json(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def problem(status: int, title: str, detail: str = "", errors: list[dict[str, str]] | None = None) -> httpx.Response:
    body = {"title": title, "status": status, "detail": detail, "errors": errors or []}
    return httpx.Response(status, content=json.dumps(body), headers={"content-type": "application/problem+json"})


def sse(
    *messages: tuple[int | None, str, dict[str, Any]], broken: bool = False, so_far: int | None = None
) -> Responder:
    """A stream of (number, type, data); ``broken``: the connection breaks after them; ``so_far``: the number up to
    which it tells then that all have come."""

    def body() -> Iterator[bytes]:
        yield b"retry: 1\n: welcome\n\n"
        for number, kind, data in messages:
            head = f"id: {number}\n" if number is not None else ""
            yield f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
        if so_far is not None:
            yield f'event: so-far\ndata: {{"number": {so_far}}}\n\n'.encode()
        if broken:
            raise httpx.ReadError("connection reset by peer")

    return lambda _: httpx.Response(200, content=body(), headers={"content-type": "text/event-stream"})


def job_event(number: int, state: str) -> tuple[int, str, dict[str, Any]]:
    kind = f"ces.v1.job.{state}"
    data = {"job": JOB, "state": state}
    return number, kind, {"type": kind, "subject": JOB, "time": "2026-01-01T09:00:00Z", "data": data}


def make_job(
    state: str = "running", *, round_: int | None = None, waiting: Reason | None = None, **more: Any
) -> JobView:
    placed = state != "queued"
    over = state in ("succeeded", "failed", "cancelled")
    progress = (
        None if round_ is None else {"progress": {"round": round_, "rounds": 40, "loss": 0.25, "accuracy": 0.951}}
    )
    tasks = [
        TaskView(
            name=f"worker-{rank}",
            rank=rank,
            cpu=500,
            memory=2**28,
            node=f"n{rank}" if placed else None,
            state=("running" if not over else "succeeded" if state == "succeeded" else "failed") if placed else None,
            exit_code=1 if state == "failed" else None,
            progress=progress,
        )
        for rank in range(2)
    ]
    flows = [
        FlowView(
            src=f"worker-{rank}",
            dst=f"worker-{1 - rank}",
            min=10_000_000,
            max=50_000_000,
            rate=40_000_000 if placed else None,
            path=[f"n{rank}", "s0", f"n{1 - rank}"] if placed else [],
            enforced=placed,
            measured=38_500_000.0 if round_ else None,
        )
        for rank in range(2)
    ]
    times = {"started_at": SUBMITTED + timedelta(seconds=5)} if placed else {}
    if over:
        times["finished_at"] = SUBMITTED + timedelta(seconds=70)
    fields: dict[str, Any] = {"id": JOB, "name": "digits", "state": state, "priority": 50, "tasks": 2, "attempt": 1}
    fields |= {"restarts": 0, "submitted_at": SUBMITTED, "placement": tasks, "flows": flows, "waiting": waiting}
    return JobView(**(fields | times | more))


def make_node(name: str) -> NodeView:
    fields = {"state": "ready", "cordoned": False, "cpu": 4000, "memory": 2**33, "gpu": 0, "cpu_allocated": 0}
    fields |= {"memory_allocated": 0, "gpu_allocated": 0, "arch": "arm64", "runtime": "process", "network": "tc"}
    return NodeView(name=name, host_address="10.0.0.1", subnet="10.1.0.0/24", **fields)


def make_applicant(name: str, address: str = "192.0.2.11", **more: Any) -> Applicant:
    told: dict[str, Any] = {"host_keys": ["SHA256:" + "A" * 43], "user": "root", "port": 22, "arch": "aarch64"}
    told |= {"applied_at": SUBMITTED, "ends_at": SUBMITTED + timedelta(days=1)}
    return Applicant(name=name, address=address, **(told | more))


def make_token(name: str, role: Role = Role.SUBMITTER, **more: Any) -> AccessTokenView:
    fields = {"tenants": ["red"], "max_priority": 60, "expires_at": SUBMITTED + timedelta(days=90)}
    return AccessTokenView(name=name, role=role, created_at=SUBMITTED, created_by="admin", **(fields | more))


@pytest.fixture
def samples() -> SimpleNamespace:
    """What tests build answers from."""
    return SimpleNamespace(
        job=make_job,
        node=make_node,
        applicant=make_applicant,
        token=make_token,
        problem=problem,
        sse=sse,
        job_event=job_event,
        submitted=SUBMITTED,
        id=JOB,
        url=URL,
    )


@pytest.fixture
def manager() -> FakeManager:
    return FakeManager()


@pytest.fixture
def client(manager: FakeManager) -> Iterator[Client]:
    with Client(URL, "secret", transport=httpx.MockTransport(manager), insecure=True) as made:
        yield made


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Retries without pauses, and a watcher that looks often."""
    monkeypatch.setattr(watching, "TICK_S", 0.005)
    monkeypatch.setattr(watching, "GATHER_S", 0.005)
    monkeypatch.setattr(watching, "REFRESH_S", 0.02)
    monkeypatch.setattr(watching, "STOPPING_S", 0.02)
    stamina.instrumentation.set_on_retry_hooks([])  # as the command does: its output is not for logs
    with stamina.set_testing(True, attempts=5, cap=True):
        yield
    stamina.instrumentation.set_on_retry_hooks(None)


@pytest.fixture(autouse=True)
def _no_context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads or writes the context of whoever runs it."""
    for name in ("CES_URL", "CES_TOKEN", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "none" / "context.json"))


@pytest.fixture
def connected(manager: FakeManager, monkeypatch: pytest.MonkeyPatch) -> FakeManager:
    """The ``ces`` command talks to the fake manager."""
    monkeypatch.setattr(
        session, "connect", lambda **_: Client(URL, "secret", transport=httpx.MockTransport(manager), insecure=True)
    )
    return manager


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: digits\n"
        "tasks: [{name: worker, replicas: 2, command: [python, -m, ces_workloads.train]}]\n"
        "flows: {topology: ring, bandwidth: {min: 10Mbit, max: 50Mbit}}\n"
    )
    return path
