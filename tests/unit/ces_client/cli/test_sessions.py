"""``ces session``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import httpx
from ces_command import ces

from ces_common.messages.identities import SessionView
from ces_common.roles import Role

ID = "01JDPB8Q3M7V5Y2C4Z6K8N0R1A"


def test_sessions_are_listed_and_ended(connected, samples):
    now = datetime.now(UTC)
    begun = {"opened_at": now - timedelta(hours=2, seconds=5), "expires_at": now + timedelta(hours=10, minutes=1)}
    one = SessionView(id=ID, holder="eve", role=Role.VIEWER, tenants=["red"], **begun)
    code = one.model_copy(update={"holder": "ops", "tenants": None, "opened_at": None})
    connected.on("GET", "sessions", [one, code])
    _, first, second = ces("session", "list").stdout.splitlines()
    assert first.split()[:4] == [ID, "eve", "viewer", "red"]
    assert "2h00m ago" in first
    assert "all" in second
    assert "not yet" in second
    assert [each["holder"] for each in json.loads(ces("session", "list", "-o", "json").stdout)] == ["eve", "ops"]
    connected.on("DELETE", f"sessions/{ID}", httpx.Response(204))
    assert f"session {ID} is refused from now on" in ces("session", "end", ID).stdout
    connected.on("GET", "sessions", [])
    assert ces("session", "list").stdout == "nobody has a session\n"
    connected.on("DELETE", f"sessions/{ID}", samples.problem(404, "Not found", "there is no such session"))
    assert "there is no such session" in ces("session", "end", ID, code=2).stderr
