"""A cluster on emulated hosts with shaped links, for as long as a measurement takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from ces_experiments.common.conditions import wait_for
from ces_experiments.common.interruption import ended_tidily, undisturbed
from ces_testbed.cluster import Cluster
from ces_testbed.readiness import COMPILED_S
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, Timing, free_port
from ces_testbed.topology import Topology

PATIENT = Timing(lease_s=60, unreachable_s=30)
SWITCH = "s1"


@contextmanager
def emulated(name: str, topology: Topology, **spec: Any) -> Iterator[Cluster]:
    """A running cluster, removed when the block ends, be it by an exception or a signal; what cannot be removed is
    named on standard error. ``spec``: further fields of ClusterSpec. Raises TestbedError."""
    with ended_tidily(), TemporaryDirectory(prefix=f"ces-{name}-") as folder:
        whole = ClusterSpec(
            name=f"{name}{os.getpid()}",
            topology=topology,
            network="tc",
            api_port=free_port(LOCALHOST, set()),
            save_context=False,
            timing=PATIENT,
            log_level="warning",
            **spec,
        )
        cluster = Cluster(whole, Files(Path(folder)))
        try:
            cluster.start()
            yield cluster
        finally:
            with undisturbed():
                for what in cluster.stop():
                    print(f"could not be removed: {what}", file=sys.stderr)


def restart(cluster: Cluster, service: str, env: Mapping[str, str]) -> None:
    """Restart a central service, with more environment until it ends, and wait until it is ready. Raises
    TestbedError."""
    cluster.restart(service, env)
    url = cluster.layout.ready_url(service)
    with httpx.Client(timeout=2, trust_env=False) as http:
        wait_for(lambda: _ready(http, url), f"{service} is ready", COMPILED_S)


def _ready(http: httpx.Client, url: str) -> bool:
    try:
        return http.get(url).status_code == 200
    except httpx.TransportError:
        return False


def star(count: int, cpu: int | str, memory: str, bandwidth: str) -> Topology:
    """Hosts on one switch, all alike; amounts as topology files say them."""
    names = [f"n{i + 1}" for i in range(count)]
    hosts: list[dict[str, Any]] = [{"name": name, "cpu": cpu, "memory": memory} for name in names]
    links = [{"src": name, "dst": SWITCH, "bandwidth": bandwidth} for name in names]
    return Topology.model_validate({"nodes": [*hosts, {"name": SWITCH}], "links": links})
