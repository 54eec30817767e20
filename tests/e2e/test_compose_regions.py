"""Two of the three regions and their hub as `docker compose up` starts them: a job that has no room in one runs in the
other. A third would take another half a minute and tell nothing more: test_compose_files.py compares all three."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compose_stack import RegionStack, started
from waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.needs("engine", "compose"), pytest.mark.timeout(600), pytest.mark.soak]
LEAVES = {
    "name": "leaves",
    "regions": ["any"],
    "tasks": [
        {
            "name": "w",
            "image": "ces-worker-train",
            "command": ["python", "-c", "print('it ran elsewhere')"],
            "resources": {"cpu": "1500m", "memory": "64Mi"},
        }
    ],
}


@pytest.fixture(scope="module")
def stack() -> Iterator[RegionStack]:
    with started(RegionStack(f"cesregions{os.getpid()}", ["north", "east"])) as stack:
        yield stack


def known(stack: RegionStack) -> dict[str, Any]:
    return {each["name"]: each["state"] for each in json.loads(stack.ces("get", "regions", "-o", "json"))}


def test_a_job_that_has_no_room_at_home_runs_in_another_region(stack: RegionStack, tmp_path: Path) -> None:
    there = {"north": "here", "east": "ready", "west": "silent"}
    assert wait_until(lambda: known(stack) == there, PATIENCE_S, pause_s=1.0), known(stack)
    file = tmp_path / "leaves.yaml"
    file.write_text(json.dumps(LEAVES))
    stack.ces("submit", str(file), "--wait")
    job = stack.job("leaves")
    assert (job["state"], job["region"]) == ("succeeded", "east")
    assert stack.ces("logs", "leaves").strip().endswith("it ran elsewhere")
    assert wait_until(lambda: not stack.workers(), PATIENCE_S, pause_s=0.5), "its containers are still there"


def test_every_service_of_a_region_sees_its_own_secrets_alone(stack: RegionStack) -> None:
    look = ["python", "-c", "import os; print(*sorted(os.listdir('/secrets')))"]
    for service in ("manager", "scheduler", "compute-ctl", "network-ctl", "federation"):
        status, said = stack.container(f"east-{service}").exec_run(look, user="0")
        assert (status, said.decode().split()) == (0, [service])
    status, said = stack.container("hub").exec_run(["ls", "/hub"])
    assert (status, said.decode().split()) == (0, ["server"])
