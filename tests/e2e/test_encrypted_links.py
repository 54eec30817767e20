"""A whole cluster whose links are encrypted: what agents tell of their keys, and keys that are replaced under a job."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from fault_cluster import FaultCluster, program, running, star, wait_for
from measured_traffic import arrived, said
from shared_medium import PORT as PORT_OF_HOST
from shared_medium import one_switch
from underlay_capture import capture, udp_ports

from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY
from ces_testbed.topology import Topology

pytestmark = [pytest.mark.needs("root", "wireguard"), pytest.mark.alone]

PORT = 51872
SEND_S = 120.0  # longer than two keys take, of which one is replaced after the other
LONGEST_GAP_S = 5.0  # in which nothing arrives, on a busy machine


def encrypted(topology: Topology) -> Topology:
    links = [link.model_copy(update={"kind": "wireguard"}) for link in topology.links]
    return topology.model_copy(update={"links": links})


def key_of(folder: Path, node: str) -> str:
    (file,) = folder.rglob(f"{node}/link-keys.json")
    return str(json.loads(file.read_text())["current"])


def moments(cluster: FaultCluster, job: str) -> list[float]:
    """When something arrived, in seconds."""
    (samples,) = arrived(said(cluster, cluster.client.jobs.get(job))).values()
    return [moment for moment, _ in samples]


def test_a_job_notices_nothing_of_keys_that_neighbours_replace_at_once(tmp_path: Path) -> None:
    with running("enc", tmp_path, encrypted(star(2, link="20Mbit")), underlay=one_switch) as cluster:
        topology = cluster.client.topology
        wait_for(lambda: all(link.round_trip_s for link in topology.links()), "every neighbour has answered")
        assert {(link.kind, link.state) for link in topology.links()} == {("wireguard", "up")}
        bandwidth = {"min": "5Mbit", "max": "5Mbit"}
        tasks = [
            {
                "name": f"w{number}",
                "resources": {"cpu": "500m", "memory": "128Mi"},
                "constraints": {"labels": {"host": f"n{number}"}},
                **program("traffic", SEND_S, "flows"),
            }
            for number in (1, 2)
        ]
        edges = [{"src": "w1-0", "dst": "w2-0", "bandwidth": bandwidth}]
        flows = {"topology": "edges", "edges": edges}
        job = cluster.submit({"name": "enc", "tasks": tasks, "flows": flows})
        cluster.await_state(job, "running")
        seen = len(cluster.events())
        first = {node: key_of(tmp_path, node) for node in ("n1", "s1")}
        with capture(DIRECTORY / cluster.cluster.hosts.host_namespace("s1"), PORT_OF_HOST) as passing:
            for node in first:
                cluster.client.nodes.rotate_key(node)
            wait_for(
                lambda: all(key_of(tmp_path, node) != key for node, key in first.items()),
                "the switch and its neighbour have other keys",
            )
            ports = udp_ports(passing.frames())
        assert ports == {PORT}
        before = moments(cluster, job)
        wait_for(lambda: moments(cluster, job)[-1] > before[-1] + LONGEST_GAP_S, "the job sends under the other keys")
        view = cluster.client.jobs.get(job)
        assert (view.state, view.attempt) == ("running", 1)
        cluster.client.jobs.cancel(job)
        assert not [event for event in cluster.events()[seen:] if event["type"] == "link.changed"]
        assert max(later - sooner for sooner, later in pairwise(moments(cluster, job))) < LONGEST_GAP_S
        cluster.check()
