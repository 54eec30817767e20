"""A node that its owner lends: given back by its agent alone, also while the manager is away, and used again later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fault_cluster import FaultCluster, recorded_job, wait_for
from resized_jobs import PLACES, malleable
from waiting import answers

from ces_client.errors import ApiError
from ces_common.cgroups import Group, hierarchies
from ces_edge_agent.lending.command import command_file
from ces_edge_agent.lending.record import record_file
from ces_testbed.services import MANAGER, agent_name

LENT = "n1"
QUIET_S = 3
BUSY_CORES = 1 + (os.cpu_count() or 1) // 50  # well above the percent that reclaims the device
BUSY = "import sys\nfrom ces_common.cgroups import Group, hierarchies\n" + (
    "Group(hierarchies(), sys.argv[1]).join()\nwhile True: pass"
)
Reclaim = Callable[[FaultCluster, str], AbstractContextManager[None]]


@pytest.fixture
def owner(cluster: FaultCluster) -> Iterator[str]:
    """The control group of the owner of one node's device, which is lent for as long as the test runs. Other tests
    share this machine, so nothing but that group counts as the owner's."""
    name = f"ces-owner-{cluster.cluster.spec.name}"
    group = Group(hierarchies(), name)
    assert "cpu" in group.create(1000 * (BUSY_CORES + 1), 2**30, 16 + BUSY_CORES)
    env = {
        "CES_LENT": "true",
        "CES_LENT_QUIET_S": str(QUIET_S),
        "CES_OWNER_GROUP": name,
        "CES_LENT_BELOW": "0.5",
        "CES_RECLAIM_AT": "1",
    }
    cluster.cluster.restart(agent_name(LENT), env)
    try:
        await_lent(cluster)
        yield name
    finally:
        group.kill()
        group.remove()
        command_file(cluster.cluster.files.agent(LENT)).unlink(missing_ok=True)
        cluster.cluster.restart(agent_name(LENT))
        wait_for(lambda: not reclaimed(cluster), "the node is as it was")


def reclaimed(cluster: FaultCluster) -> bool:
    return next(node.reclaimed for node in cluster.ask(lambda: list(cluster.client.nodes.list())) if node.name == LENT)


def await_lent(cluster: FaultCluster) -> None:
    """The agent lends its device, and the manager knows."""
    record = record_file(cluster.cluster.files.agent(LENT))

    def lent() -> bool:
        return record.exists() and json.loads(record.read_text())["lent"] and not reclaimed(cluster)

    wait_for(lent, "the node is lent")


def changes(cluster: FaultCluster) -> list[str]:
    """Whether the node was reclaimed or lent, in order."""
    told = [event["data"] for event in cluster.events() if event["type"].endswith("node.changed")]
    return [each["change"] for each in told if each["node"] == LENT and each["change"] in ("reclaimed", "lent")]


@contextmanager
def load(cluster: FaultCluster, owner: str) -> Iterator[None]:
    """Programs of the owner's take the CPU."""
    programs = [subprocess.Popen([sys.executable, "-c", BUSY, owner]) for _ in range(BUSY_CORES)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


@contextmanager
def command(cluster: FaultCluster, owner: str) -> Iterator[None]:
    """The owner says so on the device."""
    say(cluster, "reclaim")
    yield
    say(cluster, "lend")


def say(cluster: FaultCluster, word: str) -> None:
    folder = str(cluster.cluster.files.agent(LENT))
    told = [sys.executable, "-m", "ces_edge_agent.lending.command", word, "--state-dir", folder]
    subprocess.run(told, check=True, timeout=60)


def submit_there(cluster: FaultCluster, job: dict[str, object]) -> str:
    """Submit a job that may run anywhere, and have it begin on the lent node."""
    others = [node for node in cluster.nodes if node != LENT]
    for node in others:
        cluster.client.nodes.cordon(node)
    try:
        name = cluster.submit(job)
        view = cluster.await_state(name, "running")
        assert {each.node for each in view.placement} == {LENT}
    finally:
        for node in others:
            cluster.client.nodes.uncordon(node)
    return name


@pytest.mark.timeout(400)
@pytest.mark.needs("root")
@pytest.mark.parametrize("reclaim", [load, command])
def test_the_owner_has_the_device_back_while_the_manager_is_away(
    cluster: FaultCluster, owner: str, open_folder: Path, reclaim: Reclaim
) -> None:
    hold = open_folder / "hold"
    hold.touch()
    job = submit_there(cluster, recorded_job("guest", 0, "stubborn", hold, "busy", replicas=2))
    cluster.cluster.kill(MANAGER, stay_down=True)
    assert len(cluster.worker_pids(job)) >= 2
    with reclaim(cluster, owner):
        wait_for(lambda: not cluster.worker_pids(job), "nothing of CES runs on the device")
        cluster.cluster.restart(MANAGER)
        wait_for(lambda: answers(cluster.cluster.layout.ready_url(MANAGER)), "the manager is ready")
        wait_for(lambda: LENT not in nodes_of(cluster, job) and state(cluster, job) == "running", "it runs elsewhere")
        assert cluster.ask(lambda: cluster.client.jobs.get(job)).restarts == 0
        assert reclaimed(cluster)
    hold.unlink()
    cluster.finish(job)
    await_lent(cluster)
    assert changes(cluster)[-2:] == ["reclaimed", "lent"]
    again = recorded_job("again", 0.1, replicas=1)
    again["tasks"][0]["constraints"] = {"labels": {"host": LENT}}
    cluster.finish(cluster.submit(again))


@pytest.mark.timeout(400)
@pytest.mark.needs("root")
def test_an_operator_reclaims_it_and_a_malleable_job_leaves(
    cluster: FaultCluster, owner: str, open_folder: Path
) -> None:
    hold = open_folder / "hold"
    job = cluster.submit(malleable("guest", hold, 1, PLACES))
    wait_for(lambda: LENT in nodes_of(cluster, job) and state(cluster, job) == "running", "it runs there, too")
    with pytest.raises(ApiError, match="is not lent"):
        cluster.client.nodes.reclaim("n2")
    cluster.client.nodes.reclaim(LENT)
    wait_for(lambda: LENT not in nodes_of(cluster, job) and state(cluster, job) == "running", "it runs elsewhere")
    view = cluster.client.jobs.get(job)
    assert view.restarts == 0
    assert view.size == len(view.placement) <= 6
    assert reclaimed(cluster)
    cluster.client.nodes.lend(LENT)
    await_lent(cluster)
    hold.unlink()
    cluster.finish(job)


def nodes_of(cluster: FaultCluster, job: str) -> set[str]:
    return {each.node for each in cluster.ask(lambda: cluster.client.jobs.get(job)).placement}


def state(cluster: FaultCluster, job: str) -> str:
    return cluster.ask(lambda: cluster.client.jobs.get(job)).state
