"""The whole cluster as `docker compose up` starts it: a job trains on it, bandwidth is as allocated, nothing stays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
import yaml
from compose_stack import ROOT, Stack, started
from waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.needs("engine", "compose"), pytest.mark.timeout(600)]

RING = ROOT / "examples" / "jobs" / "digits-ring.yaml"
NARROW = 5_000_000  # bit/s: so little that every flow is held back
NARROW_ROUNDS = 6


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with started(Stack(f"cestest{os.getpid()}")) as stack:
        yield stack


@pytest.mark.parametrize(
    ("image", "without"),
    [("ces-edge-agent", ["torch", "sqlalchemy", "numpy"]), ("ces-scheduler", ["torch", "sqlalchemy"])],
)
def test_images_carry_no_more_than_their_service_needs(stack: Stack, image: str, without: list[str]) -> None:
    look = f"from importlib.util import find_spec; print([name for name in {without} if find_spec(name)])"
    assert stack.engine.containers.run(image, ["python", "-c", look], remove=True).decode().strip() == "[]"


def test_the_schedulers_image_brings_its_solver_compiled(stack: Stack) -> None:
    """Run as compose runs it: what is not found ready would be compiled at every start."""
    look = """
import sys
from numba.core.dispatcher import Dispatcher
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up

warm_up(get_solver())
known = {id(each): each for module in list(sys.modules.values()) for each in vars(module).values()
         if isinstance(each, Dispatcher) and each.py_func.__module__.startswith("ces_core.")}
print(*(sum(sum(getattr(each.stats, what).values()) for each in known.values())
        for what in ("cache_hits", "cache_misses")))
"""
    run = stack.engine.containers.run
    said = run("ces-scheduler", ["python", "-c", look], read_only=True, tmpfs={"/tmp": ""}, remove=True)
    found, compiled = map(int, said.split())
    assert found > 0
    assert compiled == 0


def test_every_service_sees_its_own_secrets_alone(stack: Stack) -> None:
    look = ["python", "-c", "import os; print(*sorted(os.listdir('/secrets')))"]
    for service in ("manager", "scheduler", "compute-ctl", "network-ctl"):
        status, said = stack.container(service).exec_run(look, user="0")
        assert (status, said.decode().split()) == (0, [service])
    assert stack.container("postgres").exec_run(["ls", "/secrets"]).output.decode().split() == ["postgres"]
    for service in ("nats", "n1"):
        assert stack.container(service).exec_run(["ls", "/secrets"]).exit_code != 0, f"{service} has none"


def test_an_agents_token_is_gone_once_it_has_joined(stack: Stack) -> None:
    status, said = stack.container("n1").exec_run(["ls", "/var/lib/ces-agent"])
    assert status == 0
    assert "nats.creds" in said.decode().split()
    assert "join-token" not in said.decode().split()


def test_the_cluster_is_audited_by_itself(stack: Stack) -> None:
    """With a token of its own, which is nobody else's."""
    said = stack.container("auditor").exec_run(["ces", "whoami", "-o", "json"])
    auditor = json.loads(said.output)
    assert (auditor["name"].startswith("auditor-"), auditor["role"]) == (True, "auditor")
    assert stack.container("auditor").exec_run(["ls", "/secrets"]).exit_code != 0
    assert "nothing was wrong" in stack.container("auditor").logs().decode()
    stack.compose("up", "-d", "--no-build", "bootstrap")
    again = json.loads(stack.container("auditor").exec_run(["ces", "whoami", "-o", "json"]).output)
    assert again["name"] == auditor["name"], "a token that is good stays"
    auditing = stack.container("auditor")
    auditing.stop(timeout=10)
    auditing.reload()
    assert auditing.attrs["State"]["ExitCode"] == 0
    auditing.start()


def test_its_dashboard_opens_signed_in(stack: Stack) -> None:
    with stack.dashboard() as address:
        page, code = address.split("#code=")
        assert httpx.get(page).headers["content-type"].startswith("text/html")
        opened = httpx.post(urljoin(page, "/v1/sessions"), json={"code": code})
        assert opened.status_code == 201, opened.text
        session = {"Authorization": f"Bearer {opened.json()['token']}"}
        nodes = httpx.get(urljoin(page, "/v1/nodes"), headers=session).json()
        assert {node["name"] for node in nodes["items"]} == {f"n{i}" for i in range(1, 6)}


def test_the_example_job_trains(stack: Stack) -> None:
    stack.ces("submit", str(RING), "--wait")

    job = stack.job("digits-ring")
    assert job["state"] == "succeeded"
    assert len({placed["node"] for placed in job["placement"]}) == 5
    for flow in job["flows"]:
        assert flow["enforced"]
        assert 0 < flow["peak"] <= 1.1 * flow["rate"]
    assert wait_until(lambda: not stack.workers(), PATIENCE_S, pause_s=0.5), "its containers are still there"


def test_flows_get_what_was_allocated_and_workers_outlive_their_agent(stack: Stack, tmp_path: Path) -> None:
    desired = yaml.safe_load(RING.read_text())
    desired["name"] = "narrow"
    desired["tasks"][0]["command"] += ["--rounds", str(NARROW_ROUNDS)]
    desired["flows"]["bandwidth"] = {"min": "5Mbit", "max": "5Mbit"}
    file = tmp_path / "narrow.yaml"
    file.write_text(yaml.safe_dump(desired))

    stack.ces("submit", str(file))
    assert wait_until(lambda: stack.job("narrow")["state"] == "running", PATIENCE_S, pause_s=2.0)
    before = {worker.id for worker in stack.workers()}
    stack.container("n1").restart(timeout=10)
    assert {worker.id for worker in stack.workers()} == before
    stack.ces("wait", "narrow")

    job = stack.job("narrow")
    assert (job["state"], job["restarts"]) == ("succeeded", 0)
    for flow in job["flows"]:
        assert flow["rate"] == NARROW
        assert 0.9 * NARROW <= flow["peak"] <= 1.1 * NARROW, f"{flow['src']} to {flow['dst']}"
    assert wait_until(lambda: not stack.workers(), PATIENCE_S, pause_s=0.5), "its containers are still there"


def test_workers_end_with_their_lease_while_their_agent_is_stopped(stack: Stack, tmp_path: Path) -> None:
    """The agent's container is gone, and everything in it: who ends its workers is their sandbox."""
    sleeper = {
        "name": "sleeper",
        "tasks": [
            {
                "name": "w",
                "image": "ces-worker-train",
                "command": ["python", "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"],
                "resources": {"cpu": "100m", "memory": "64Mi"},
            }
        ],
        "restart": {"policy": "never"},
        "disconnect": "stop",
    }
    file = tmp_path / "sleeper.yaml"
    file.write_text(yaml.safe_dump(sleeper))
    stack.ces("submit", str(file))
    assert wait_until(lambda: stack.job("sleeper")["state"] == "running", PATIENCE_S, pause_s=2.0)
    node = stack.job("sleeper")["placement"][0]["node"]
    (first,) = (each for each in stack.workers() if each.labels["ces.role"] == "worker")
    stack.container(node).stop(timeout=0)

    def moved() -> bool:
        job = stack.job("sleeper")
        return bool(job["attempt"] == 2 and job["state"] == "running")

    assert wait_until(moved, PATIENCE_S, pause_s=2.0)
    (second,) = (each for each in stack.workers() if each.labels["ces.role"] == "worker" and each.id != first.id)
    first.reload()
    second.reload()
    assert first.attrs["State"]["Status"] == "exited"
    assert first.attrs["State"]["FinishedAt"] < second.attrs["State"]["StartedAt"]
    assert second.labels["ces.node"] != node

    stack.container(node).start()
    stack.ces("cancel", "sleeper")
    assert wait_until(lambda: not stack.workers(), PATIENCE_S, pause_s=0.5), "its containers are still there"


def test_nats_takes_up_the_certificates_that_the_manager_makes(stack: Stack) -> None:
    """Also after another `up`, which runs the first step again."""
    look = """
import re, ssl
def first(pem): return re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", pem, re.S)[0].split()
print(first(ssl.get_server_certificate(("nats", 4222))) == first(open("/nats-tls/nats.pem").read()))
"""

    def served() -> bool:
        return stack.container("manager").exec_run(["python", "-c", look]).output.decode().strip() == "True"

    assert wait_until(served, PATIENCE_S, pause_s=1.0), stack.compose("logs", "--tail", "5", "manager", "nats")
    stack.compose("up", "-d", "--no-build", "init")
    assert stack.container("manager").exec_run(["rm", "/nats-tls/nats.pem"]).exit_code == 0
    stack.container("manager").restart()
    assert wait_until(served, PATIENCE_S, pause_s=1.0), stack.compose("logs", "--tail", "5", "manager", "nats")
