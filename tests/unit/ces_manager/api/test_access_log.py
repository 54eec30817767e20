"""What the log tells of who asked for what."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from ces_common.messages.identities import Identity
from ces_common.roles import Role
from ces_manager.api.access_log import LONGEST_PATH, STRANGERS_AT_ONCE, AccessLog
from ces_manager.api.auth import IDENTITY


async def told(method: str, path: str, status: int, actor: str | None = None) -> list[dict[str, Any]]:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        if actor is not None:
            scope.setdefault("state", {})[IDENTITY] = Identity(name=actor, role=Role.VIEWER)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None: ...

    receive: Any = None  # nothing is read
    headers = [(b"authorization", b"Bearer very-secret")]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"token=very-secret", "headers": headers}
    with capture_logs() as lines:
        await AccessLog(answers)(scope | {"client": ("192.0.2.1", 1)}, receive, send)
    assert "very-secret" not in str(lines)
    return lines


async def test_a_change_is_told_with_who_asked_for_it() -> None:
    [line] = await told("DELETE", "/v1/jobs/j1", 202, "ci")
    assert line.pop("took_ms") >= 0
    assert line == {
        "event": "request", "log_level": "info", "actor": "ci", "address": "192.0.2.1", "method": "DELETE",
        "path": "/v1/jobs/j1", "status": 202,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "status", "level"),
    [("GET", 200, "debug"), ("GET", 401, "info"), ("GET", 404, "info"), ("POST", 201, "info"), ("PUT", 422, "info")],
)
async def test_what_was_merely_read_is_told_more_quietly(method: str, status: int, level: str) -> None:
    [line] = await told(method, "/v1/jobs", status)
    assert (line["log_level"], line["actor"]) == (level, None)


async def test_health_is_not_told_and_long_paths_are_cut() -> None:
    assert await told("GET", "/healthz", 200) == []
    [line] = await told("GET", "/v1/" + "x" * 5000, 404)
    assert len(line["path"]) == LONGEST_PATH


async def test_an_error_of_ours_is_told_too() -> None:
    async def falls_over(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    scope: Any = {"type": "http", "method": "POST", "path": "/v1/jobs", "client": None}
    nothing: Any = None
    with capture_logs() as lines, pytest.raises(ZeroDivisionError):
        await AccessLog(falls_over)(scope, nothing, nothing)
    assert [(line["status"], line["method"]) for line in lines] == [(500, "POST")]


async def test_strangers_do_not_fill_the_log() -> None:
    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})

    async def send(message: Any) -> None: ...

    async def ask(address: str) -> None:
        scope: Any = {"type": "http", "method": "GET", "path": "/v1/jobs", "client": (address, 1)}
        nothing: Any = None
        await log(scope, nothing, send)

    log, status = AccessLog(refuses), 401
    with capture_logs() as lines:
        for _ in range(2 * STRANGERS_AT_ONCE):
            await ask("192.0.2.1")
        status = 200
        await ask("192.0.2.3")
        status = 401
        await ask("192.0.2.2")
    assert [line["log_level"] for line in lines[-2:]] == ["debug", "info"]
    assert STRANGERS_AT_ONCE <= len(lines) < STRANGERS_AT_ONCE + 50
    assert "left_out" not in lines[-2], "most see no line of this level"
    assert lines[-1]["left_out"] == 2 * STRANGERS_AT_ONCE + 2 - len(lines)
