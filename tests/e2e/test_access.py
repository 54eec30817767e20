"""Access tokens as people use them: made, given away, used, looked after and taken back, on a running cluster."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from ces_command import ces
from fault_cluster import FaultCluster, recorded_job


@pytest.fixture
def speak_as(cluster: FaultCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Whose token the next commands send."""
    monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "none" / "context.json"))
    monkeypatch.setenv("CES_URL", cluster.cluster.url)
    return lambda token: monkeypatch.setenv("CES_TOKEN", token)


def test_a_token_is_made_used_and_taken_back(
    cluster: FaultCluster, speak_as: Callable[[str], None], tmp_path: Path
) -> None:
    name = f"ci-{uuid.uuid4().hex[:8]}"  # a name is used once and for all
    speak_as(cluster.cluster.token)
    made = ces("token", "create", name, "--role", "submitter", "--tenant", "red", "--max-priority", "20")
    other = cluster.submit(recorded_job("of-others", 0.2))

    speak_as(made.stdout.strip())
    assert json.loads(ces("whoami", "-o", "json").stdout)["tenants"] == ["red"]
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(recorded_job("ours", 0.2)))
    ces("submit", file, "--wait")
    [job] = json.loads(ces("get", "jobs", "-o", "json").stdout)
    assert (job["name"], job["tenant"], job["priority"], job["state"]) == ("ours", "red", 20, "succeeded")
    assert "no job" in ces("describe", "job", other, code=2).stderr
    assert "needs the role operator" in ces("node", "cordon", "n1", code=2).stderr

    speak_as(cluster.cluster.token)
    listed = {each["name"]: each for each in json.loads(ces("token", "list", "-o", "json").stdout)}
    assert listed[name]["created_by"] == "admin"
    shown = [json.loads(line) for line in ces("events", "--actor", name, "-o", "json").stdout.splitlines()]
    assert [each["data"]["subject"] for each in shown] == [job["id"]]
    ces("token", "revoke", name)
    cluster.finish(other)

    speak_as(made.stdout.strip())
    assert f"this token, {name}, was revoked" in ces("get", "jobs", code=2).stderr
