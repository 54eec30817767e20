"""``ces login`` and ``ces doctor``."""

from __future__ import annotations

import json

import httpx
import pytest
from ces_command import ces

from ces_client.cli import machine
from ces_client.client import Client
from ces_client.context import load_context
from ces_client.doctor import examine


def test_login_keeps_what_works(manager, samples, monkeypatch):
    monkeypatch.setattr(
        machine.Client,
        "from_context",
        lambda context, patience_s: Client(
            context.url, context.token, transport=httpx.MockTransport(manager), insecure=True
        ),
    )
    manager.on("GET", "nodes", [samples.node("n0")])
    manager.on("GET", "whoami", samples.problem(401, "Not authenticated"), samples.token("ci"))
    assert "valid token" in ces("login", samples.url, "--token", "wrong", "--insecure", code=2).stderr
    with pytest.raises(Exception, match="No manager is known"):
        load_context()
    told = ces("login", f"{samples.url}/", "--insecure", input="secret\n").stdout
    assert f"logged in to {samples.url} as ci, submitter (1 nodes)" in " ".join(told.split())
    assert (load_context().url, load_context().token) == (samples.url, "secret")


def test_doctor_tells_what_the_machine_can_do():
    findings = {finding.what: finding for finding in examine()}
    assert findings["python"].good
    assert "process" in findings["→ runtimes"].found
    assert all(finding.remedy for finding in findings.values() if not finding.good)
    shown = json.loads(ces("doctor", "-o", "json").stdout)["findings"]
    assert {entry["what"] for entry in shown} == set(findings)
    assert "container engine" in ces("doctor").stdout
