"""Three hosts on one switch that nobody manages: tunnels between them share a channel, and what was promised of it is
what arrives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fault_cluster import FaultCluster, program, running, wait_for
from measured_traffic import arrived, said, usual_rate
from shared_medium import Medium, busiest_rate, one_medium

from ces_common.shares import reservable_of_medium
from ces_testbed.cluster import Cluster
from ces_testbed.topology import Topology

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]

MBIT = 1_000_000
CAPACITY = 20 * MBIT
HOSTS = ("n1", "n2", "n3")
WIRES = (("n1", "n2"), ("n2", "n3"), ("n1", "n3"))
RATES = {"slow": 2 * MBIT, "fast": 4 * MBIT}  # of a job's flows; one job goes around forward, the other back
SEND_S = 20.0
STRETCH_S = 4.0  # of the busiest seconds
WARM_S = 3.0  # TCP finds its rate, and every worker has begun
PAYLOAD = 1398 / 1464  # of a full frame inside a tunnel, where the MTU is 1450
TOLERANCE = 0.05


def on_one_switch() -> Topology:
    nodes = [{"name": name, "cpu": "2", "memory": "2Gi", "labels": {"host": name}} for name in HOSTS]
    links = [{"src": a, "dst": b, "bandwidth": CAPACITY, "kind": "vxlan", "medium": "lan"} for a, b in WIRES]
    media = [{"name": "lan", "bandwidth": CAPACITY}]
    return Topology.model_validate({"nodes": nodes, "links": links, "media": media})


@pytest.fixture
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FaultCluster, Medium]]:
    media: list[Medium] = []

    @contextmanager
    def underlay(cluster: Cluster) -> Iterator[None]:
        with one_medium(cluster, CAPACITY) as medium:
            media.append(medium)
            yield

    with running("lan", tmp_path_factory.mktemp("lan"), on_one_switch(), underlay=underlay) as cluster:
        yield cluster, media[0]
        cluster.check()


def placed(name: str, command: dict[str, Any]) -> list[dict[str, Any]]:
    """A task on each host."""
    resources = {"cpu": "500m", "memory": "128Mi"}
    return [
        {"name": f"{name}{i}", "resources": resources, "constraints": {"labels": {"host": host}}, **command}
        for i, host in enumerate(HOSTS)
    ]


def around(name: str, step: int) -> dict[str, Any]:
    """A job with a flow from each host to the next, or to the one before."""
    bandwidth = {"min": str(RATES[name]), "max": str(RATES[name])}
    edges = [{"src": f"{name}{i}-0", "dst": f"{name}{(i + step) % 3}-0", "bandwidth": bandwidth} for i in range(3)]
    tasks = placed(name, program("traffic", SEND_S, "flows"))
    return {"name": name, "tasks": tasks, "flows": {"topology": "edges", "edges": edges}}


def one_more() -> dict[str, Any]:
    job = around("slow", 1)
    edge = {"src": "slow0-0", "dst": "slow1-0", "bandwidth": {"min": "100kbit", "max": "100kbit"}}
    return job | {"name": "one-more", "flows": {"topology": "edges", "edges": [edge]}}


def test_all_flows_get_what_was_promised_of_the_medium_that_they_share(lan: tuple[FaultCluster, Medium]) -> None:
    cluster, medium = lan
    assert sum(3 * each for each in RATES.values()) == reservable_of_medium(CAPACITY, ["vxlan"])
    flooding = cluster.submit({"name": "flooding", "tasks": placed("s", program("traffic", 120, "flood"))})
    cluster.await_state(flooding, "running")
    with medium.watched() as seen:
        jobs = [cluster.submit(around("slow", 1)), cluster.submit(around("fast", 2))]
        began = [cluster.await_state(job, "running") for job in jobs]
        assert {len(flow.path) for view in began for flow in view.flows} == {2}, "each over its own tunnel"
        refused = cluster.submit(one_more())
        wait_for(lambda: cluster.client.jobs.get(refused).waiting is not None, "nothing is left of the medium")
        waiting = cluster.client.jobs.get(refused).waiting
        assert waiting is not None
        assert (waiting.resource, waiting.available) == ("bandwidth", 0), "though every link has room"
        cluster.client.jobs.cancel(refused)
        for job in jobs:
            cluster.await_state(job, "succeeded")
    lines = [line for job in jobs for line in said(cluster, cluster.client.jobs.get(job))]
    cluster.client.jobs.cancel(flooding)
    streams = arrived(lines)
    promised = {(flow.src, flow.dst): flow.rate for view in began for flow in view.flows}
    assert streams.keys() == promised.keys()
    since = max(samples[0][0] for samples in streams.values()) + WARM_S
    until = min(samples[-1][0] for samples in streams.values())
    assert until - since > SEND_S / 2, "both jobs send together for most of their time"
    came = {pair: usual_rate(samples, since, until) / PAYLOAD for pair, samples in streams.items()}
    busiest = busiest_rate(seen, STRETCH_S)
    report = {pair: f"{came[pair] / MBIT:.3f} of {(promised[pair] or 0) / MBIT:g} Mbit/s" for pair in promised}
    print(report, f"the medium carried {busiest / MBIT:.2f} of {CAPACITY / MBIT:g} Mbit/s in its busiest seconds,")
    print(f"and dropped {seen[-1][2] - seen[0][2]} packets")
    for pair, allocated in promised.items():
        assert allocated is not None
        assert came[pair] == pytest.approx(allocated, rel=TOLERANCE), report
    assert busiest > 0.95 * CAPACITY, "nothing was left idle of what they share"
    assert_opened(lines, promised, until)


def assert_opened(lines: list[dict[str, Any]], flows: Any, until: float) -> None:
    """New connections along every flow opened, as long as all workers were there."""
    fresh = [line for line in lines if "fresh" in line and line["t"] <= until]
    assert {(line["task"], line["fresh"]) for line in fresh} == set(flows)
    assert all(line["ok"] for line in fresh), [line for line in fresh if not line["ok"]]
