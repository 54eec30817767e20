"""Whole clusters as regions, with a hub between them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fault_cluster import FaultCluster

from ces_testbed.borders import join_regions
from ces_testbed.cluster import Cluster
from ces_testbed.hub import HubFiles, gateway_of, places, prepare
from ces_testbed.hub_keeper import remove_hub, start_hub
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, free_port
from ces_testbed.topology import Topology


@dataclass
class Regions:
    """By the names that the test gave them; ``names``: those that they have."""

    hub: HubFiles
    clusters: dict[str, FaultCluster]
    names: dict[str, str]

    def check(self) -> None:
        for cluster in self.clusters.values():
            cluster.check()


@contextmanager
def running_regions(
    folder: Path,
    topologies: Mapping[str, Topology],
    network: str = "none",
    *,
    borders: bool = False,
    queues: Mapping[str, Path] = MappingProxyType({}),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Regions]:
    """One region of each topology; all of it is taken away at the end. ``borders``: neighbours are joined by a border
    link. ``queues``: the files of some regions' tenants. ``settings``: of every service."""
    names = {name: f"{name}{os.getpid()}" for name in topologies}  # others may run these tests on this machine
    hub_at = HubFiles(folder / "hub")
    hub = prepare(hub_at, "hub", {names[name]: folder / name for name in topologies})
    gateways = {names[name]: gateway_of(topology) for name, topology in topologies.items()} if borders else {}
    there = places(hub_at, hub, gateways)
    made = {
        name: Cluster(
            ClusterSpec.model_validate(
                {
                    "name": names[name],
                    "topology": topology,
                    "network": network,
                    "api_port": free_port(LOCALHOST, set()),
                    "save_context": False,
                    "settings": dict(settings),
                    "region": there[names[name]],
                    "queue": queues.get(name),
                }
            ),
            Files(folder / name),
        )
        for name, topology in topologies.items()
    }
    left: list[str] = []
    try:
        start_hub(hub_at)
        with ThreadPoolExecutor(len(made)) as threads:
            list(threads.map(Cluster.start, made.values()))
        if borders and network == "tc":
            join_regions(there)
        with ExitStack() as clients:
            clusters = {
                name: FaultCluster(cluster, clients.enter_context(cluster.client())) for name, cluster in made.items()
            }
            yield Regions(hub_at, clusters, names)
    finally:
        for cluster in made.values():
            left += cluster.stop()
        left += remove_hub(hub_at)
    assert left == [], left
