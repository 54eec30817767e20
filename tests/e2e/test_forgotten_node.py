"""A node that never returns: what it held is free again, its credential opens nothing, its name may join anew."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest
from fault_cluster import FaultCluster, kill_worker, recorded_job, running, star, wait_for

from ces_client.errors import ApiError
from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import AccessRefused
from ces_common.natsauth import Credentials, read_credentials
from ces_testbed.services import agent_name
from ces_testbed.spec import Timing

TIMING = Timing(lease_s=7, lease_margin_s=3, unreachable_s=4)


def credentials_of(cluster: FaultCluster, node: str) -> Credentials:
    (file,) = cluster.cluster.files.agent(node).rglob("*.creds")
    return read_credentials(file)


def is_let_in(cluster: FaultCluster, node: str, credentials: Credentials) -> bool:
    """Whether a stranger with a node's credential gets as far as being let in."""

    async def attempt() -> bool:
        layout = cluster.cluster.layout
        bus = NatsBus(layout.nats_url, name=node, credentials=credentials, tls=layout.tls())
        try:
            await bus.connect(deadline_s=90)
        except AccessRefused:
            return False
        finally:
            await bus.close()
        return True

    return asyncio.run(attempt())


def documents(cluster: FaultCluster, node: str) -> list[str]:
    """Which controllers keep a document for the node."""

    async def look() -> list[str]:
        found = []
        for kind in ("compute", "network"):
            controller = f"{kind}-ctl"
            layout = cluster.cluster.layout
            credentials = read_credentials(layout.credentials(controller))
            bus = NatsBus(layout.nats_url, name=controller, credentials=credentials, tls=layout.tls())
            await bus.connect(deadline_s=90)
            if await bus.kv_get(subjects.desired_key(node, kind)) is not None:
                found.append(kind)
            await bus.close()
        return found

    return asyncio.run(look())


def worker_namespaces(cluster: FaultCluster, node: str) -> list[str]:
    """Those that sandboxes of the node's allocations have left."""
    prefix = f"ces-{cluster.cluster.spec.name}-{node}-"
    spaces = cluster.kernel_state().get("namespaces", [])
    return [name for name in spaces if name.startswith(prefix) and not name.endswith("-dp")]


def refusal(cluster: FaultCluster, node: str) -> str | None:
    try:
        cluster.client.nodes.forget(node)
    except ApiError as error:
        if error.status != 409:
            raise
        return str(error)
    return None


def subnets_of(cluster: FaultCluster) -> dict[str, str]:
    return {node.name: node.subnet for node in cluster.client.nodes.list()}


def test_a_node_that_never_returns_is_forgotten(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("fltg")
    with running("fltg", folder, star(3), timing=TIMING) as cluster:
        subnets = subnets_of(cluster)
        job = cluster.submit(recorded_job("stays", 6, replicas=1, disconnect="keep"))
        node = cluster.await_state(job, "running").placement[0].node
        assert node is not None
        other = next(name for name in cluster.nodes if name != node)
        wait_for(lambda: len(cluster.worker_pids(job)) == 1, "its worker lives")
        assert "is alive: drain it first" in str(refusal(cluster, node))
        assert documents(cluster, node) == ["compute", "network"]
        old = credentials_of(cluster, node)

        cluster.cluster.kill(agent_name(node), stay_down=True)  # the device is gone, and its worker with it
        kill_worker(cluster.worker_pids(job)[0])
        wait_for(
            lambda: next(one.state for one in cluster.client.nodes.list() if one.name == node) == "unreachable",
            "its silence is noticed",
        )
        assert "may still be alive" in str(refusal(cluster, node))
        assert is_let_in(cluster, node, old)
        wait_for(lambda: refusal(cluster, node) is None, "its lease has ended", pause_s=0.5)

        assert not is_let_in(cluster, node, old), "its credential is refused"
        assert is_let_in(cluster, other, credentials_of(cluster, other)), "the others' are not"
        assert node not in {one.name for one in cluster.client.nodes.list()}
        wait_for(lambda: documents(cluster, node) == [], "its documents are removed")
        view = cluster.finish(job)
        assert (view.attempt, view.placement[0].node == node) == (2, False)

        cluster.cluster.kill("nats")  # it starts again by itself, from a configuration that knows of nothing
        cluster.await_start_of("nats", 2)
        wait_for(lambda: cluster.ready("manager") is None, "the manager is connected again")
        assert not is_let_in(cluster, node, old)

        shutil.rmtree(cluster.cluster.files.agent(node))  # another device, on which nothing is left of the first
        for space in worker_namespaces(cluster, node):
            subprocess.run(["ip", "netns", "delete", space], check=True)
        token = cluster.client.nodes.create_token(node).token
        cluster.cluster.restart(agent_name(node), {"CES_JOIN_TOKEN": token})
        wait_for(
            lambda: {one.name: one.state for one in cluster.client.nodes.list()}.get(node) == "ready",
            "a successor of its name joins",
        )
        assert subnets_of(cluster)[node] not in subnets.values(), "the former one rests"
        cluster.renumbered(subnets[node], subnets_of(cluster)[node])
        again = recorded_job("again", 0.5, replicas=1)
        again["tasks"][0]["constraints"] = {"labels": {"host": node}}
        cluster.finish(cluster.submit(again))
        assert is_let_in(cluster, node, credentials_of(cluster, node))
        assert not is_let_in(cluster, node, old)
        cluster.check()
