"""``ces token`` and ``ces whoami``."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from ces_command import ces

from ces_client.view.formats import DASH
from ces_client.view.tokens import token_table
from ces_common.roles import Role


def test_a_token_is_shown_alone_and_its_terms_beside(connected, samples):
    made = {"token": "ces_1_secret", "access": samples.token("ci").model_dump(mode="json")}
    connected.on("POST", "tokens", made, status=201)
    shown = ces(
        "token", "create", "ci", "--role", "submitter", "--tenant", "red", "--max-priority", "60", "--lasts", "2h"
    )
    assert shown.stdout == "ces_1_secret\n"
    assert "ci, submitter, good until 2026-04-01" in shown.stderr
    [sent] = connected.sent("POST", "tokens")
    asked = {"name": "ci", "role": "submitter", "tenants": ["red"], "max_priority": 60, "lasts": 7200}
    assert json.loads(sent.content) == asked
    assert json.loads(ces("token", "create", "ci", "--role", "admin", "-o", "json").stdout) == made


@pytest.mark.parametrize(("lasts", "said"), [("soon", "--lasts"), ("1s", "at least a minute"), ("20y", "--lasts")])
def test_a_duration_that_cannot_be_is_refused_before_anything_is_sent(connected, lasts, said):
    assert said in ces("token", "create", "ci", "--role", "admin", "--lasts", lasts, code=2).stderr
    assert not connected.requests


def test_tokens_are_listed_with_what_became_of_them(connected, samples):
    now = samples.submitted + timedelta(days=1)
    tokens = [
        samples.token("ci", last_used_at=now - timedelta(minutes=5)),
        samples.token("gone", revoked_at=now),
        samples.token("old", Role.VIEWER, expires_at=now),
        samples.token("ops", Role.OPERATOR, tenants=None),
    ]
    columns = [[str(cell) for cell in column.cells] for column in token_table(tokens, now).columns]
    assert columns[2] == ["red", "red", "red", "all"]
    assert columns[5] == ["5m00s ago", DASH, DASH, DASH]
    assert columns[6] == ["good, 89d00h left", "revoked", "expired", "good, 89d00h left"]
    connected.on("GET", "tokens", tokens)
    assert "ops" in ces("token", "list").stdout
    listed = json.loads(ces("token", "list", "-o", "json").stdout)
    assert [each["name"] for each in listed] == ["ci", "gone", "old", "ops"]
    connected.on("GET", "tokens", [])
    assert ces("token", "list").stdout == "no tokens but the first one\n"


def test_a_token_is_revoked_by_its_name(connected, samples):
    connected.on("DELETE", "tokens/ci", samples.token("ci", revoked_at=samples.submitted))
    assert "token ci is refused from now on" in ces("token", "revoke", "ci").stdout
    assert json.loads(ces("token", "revoke", "ci", "-o", "json").stdout)["revoked_at"]


def test_whoami_tells_what_the_token_allows(connected, samples):
    connected.on("GET", "whoami", samples.token("ci"))
    shown = ces("whoami").stdout
    for fact in ("ci", "submitter", "red", "60", "2026-04-01"):
        assert fact in shown
    assert json.loads(ces("whoami", "-o", "json").stdout)["tenants"] == ["red"]
