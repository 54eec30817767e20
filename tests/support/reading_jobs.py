"""Jobs of which a task reads data that lies on node n1 (tests/e2e/programs/reader.py), and what it says of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fault_cluster import FaultCluster, program, star

from ces_testbed.topology import Topology


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hosts(root: Path) -> Topology:
    """Three around a switch, of which n1 has data."""
    topology = star(3)
    first, *others = topology.nodes
    return topology.model_copy(update={"nodes": [first.model_copy(update={"datasets": root}), *others]})


def offered(cluster: FaultCluster) -> list[str]:
    return next(node.datasets for node in cluster.client.nodes.list() if node.name == "n1")


def reader(name: str, host: str, *arguments: str) -> dict[str, Any]:
    """A task that reads on ``host``."""
    return {
        "name": name,
        "image": "ces-worker-test",
        "resources": {"cpu": "200m", "memory": "128Mi"},
        "constraints": {"labels": {"host": host}},
        **program("reader", *arguments),
    }


def reading(name: str, host: str, *arguments: str, **data: Any) -> dict[str, Any]:
    """A job of one task on ``host`` that reads data of n1."""
    source = {"node": "n1", "dst": "r-0", "bandwidth": {"min": "5Mbit", "max": "20Mbit"}, "datasets": ["mnist"], **data}
    return {"name": name, "tasks": [reader("r", host, *arguments)], "flows": {"inputs": [source]}}


def said(cluster: FaultCluster, job: str, task: str = "r-0") -> list[dict[str, Any]]:
    """What a worker printed, but for the first line, which tells its inputs."""
    lines = [json.loads(line) for line in cluster.client.jobs.logs(job, task) if line.startswith("{")]
    return lines[1:]


def address_of(cluster: FaultCluster, job: str) -> str:
    """Where the job's reader was told to read: HOST:PORT."""
    lines = [json.loads(line) for line in cluster.client.jobs.logs(job, "r-0") if line.startswith("{")]
    url: str = lines[0]["inputs"][0]["url"]
    return url.removeprefix("http://").strip("/")
