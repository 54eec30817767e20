"""A gang that no region has room for runs over two, and what flows over the border between them is what was promised,
whatever else is sent there."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, program, star
from measured_traffic import arrived, rate, said, usual_rate
from region_clusters import Regions, running_regions
from waiting import wait_for

from ces_common.messages.api import JobView
from ces_common.names import border_node, link_device, router_address
from ces_common.quantities import parse_bandwidth
from ces_common.states import JOB_OVER
from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_testbed.netlink import routing

pytestmark = [pytest.mark.alone, pytest.mark.needs("root")]
SEND_S, WARM_S = 20.0, 3.0
TOLERANCE = 0.01
FRAME, PAYLOAD = 1514, 1448  # bytes of a full Ethernet frame, as classes count, and of what TCP carries in it
GATEWAY = "s1"
CROWDED = 50_000_000  # bit/s on a border link of 100 Mbit/s, of which flows have 36 at most
LIFE_S = 2
RATES = {  # of every pair of tasks, of which two are in one region and one in the other
    ("w-0-0", "w-1-0"): "20Mbit",
    ("w-1-0", "w-0-0"): "12Mbit",
    ("w-1-0", "w-2-0"): "16Mbit",
    ("w-2-0", "w-1-0"): "10Mbit",
    ("w-2-0", "w-0-0"): "14Mbit",
    ("w-0-0", "w-2-0"): "18Mbit",
}


@pytest.fixture(scope="module")
def _regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    topologies = {"near": star(2), "far": star(2)}
    with running_regions(tmp_path_factory.mktemp("split"), topologies, "tc", borders=True) as made:
        wait_for(lambda: all(map(joined, made.clusters.values())), "the regions know the link between them")
        yield made


@pytest.fixture
def regions(_regions: Regions) -> Iterator[Regions]:
    yield _regions
    _regions.check()


def joined(cluster: FaultCluster) -> bool:
    views = cluster.ask(cluster.client.regions.list)
    return all(each.summary is not None and each.summary.borders for each in views)


def gang(name: str, command: dict[str, Any], rates: dict[tuple[str, str], str] = RATES, **more: Any) -> dict[str, Any]:
    """Three tasks, each of which needs a node of its own: a region has two."""
    edges = [{"src": src, "dst": dst, "bandwidth": {"min": each, "max": each}} for (src, dst), each in rates.items()]
    tasks = [
        {"name": f"w-{i}", "image": "ces-worker-test", "resources": {"cpu": "1500m", "memory": "128Mi"}, **command}
        for i in range(3)
    ]
    flows = {"topology": "edges", "edges": edges}
    return {"name": name, "tasks": tasks, "flows": flows, "regions": ["any"], **more}


def flooding_job(seconds: float) -> dict[str, Any]:
    """On both nodes of a region, to each other, without a reservation."""
    tasks = [
        {
            "name": f"f-{i}",
            "image": "ces-worker-test",
            "resources": {"cpu": "400m", "memory": "128Mi"},
            "constraints": {"labels": {"host": f"n{i + 1}"}},
            **program("traffic", seconds, "flood"),
        }
        for i in range(2)
    ]
    return {"name": "flooding", "tasks": tasks}


@contextmanager
def flooded_border(regions: Regions) -> Iterator[None]:
    """Datagrams from each gateway to the other, as many as one thread can send: to its own address, and to one that a
    worker there might have. Of none anything is reserved."""
    over = threading.Event()

    def flood(sender: socket.socket, address: str) -> None:
        while not over.is_set():
            for _ in range(200):
                try:
                    sender.sendto(bytes(1400), (address, 9))
                except OSError:
                    break  # its own queue is full
            time.sleep(0.01)

    threads, senders = [], []
    for here, there in permutations(regions.clusters.values()):
        space = Path("/var/run/netns", here.cluster.hosts.data_plane(GATEWAY))
        router = router_address(there.client.nodes.get(GATEWAY).subnet)
        for address in (router, router.rpartition(".")[0] + ".77"):
            sender = in_namespace(space, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            senders.append(sender)
            threads.append(threading.Thread(target=flood, args=(sender, address)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for sender in senders:
            sender.close()


def sent(regions: Regions) -> list[int]:
    """Bytes that each gateway has sent over the border so far, whatever they were."""
    found = []
    for here, there in permutations(regions.names, 2):
        device = link_device(border_node(regions.names[there], GATEWAY))
        with routing(regions.clusters[here].cluster.hosts.data_plane(GATEWAY)) as ip:
            (link,) = ip.get_links(ifname=device)
            found.append(int(link.get_attr("IFLA_STATS64")["tx_bytes"]))
    return found


def crossing(view: JobView) -> list[tuple[str, str]]:
    where = {task: part.region for part in view.parts for task in part.tasks}
    return [pair for pair in RATES if where[pair[0]] != where[pair[1]]]


def test_flows_over_the_border_get_what_was_promised(regions: Regions) -> None:
    near = regions.clusters["near"]
    floods = {name: cluster.submit(flooding_job(90)) for name, cluster in regions.clusters.items()}
    for name, cluster in regions.clusters.items():
        cluster.await_state(floods[name], "running")
    with flooded_border(regions):
        job = near.submit(gang("over-two", program("traffic", SEND_S, "flows")))
        view = near.await_state(job, "elsewhere")
        assert sorted(part.region for part in view.parts) == sorted(regions.names.values())
        border = crossing(view)
        assert len(border) == 4, view.parts
        began, before = time.monotonic(), sent(regions)
        wait_for(lambda: near.client.jobs.get(job).state in JOB_OVER, "the job is done", pause_s=0.5)
        passed = time.monotonic() - began
        loads = [(late - early) * 8 / passed for early, late in zip(before, sent(regions), strict=True)]
    view = near.finish(job)
    for name, cluster in regions.clusters.items():
        cluster.client.jobs.cancel(floods[name])
    streams = arrived(said(near, view))
    assert streams.keys() == RATES.keys()
    since = max(samples[0][0] for samples in streams.values()) + WARM_S
    until = min(samples[-1][0] for samples in streams.values())
    assert until - since > SEND_S / 2
    frames = {pair: usual_rate(samples, since, until) * FRAME / PAYLOAD for pair, samples in streams.items()}
    told = {pair: f"{frames[pair] / 1e6:.3f} of {each}" for pair, each in RATES.items()}
    means = {pair: f"{rate(streams[pair], since, until) * FRAME / PAYLOAD / 1e6:.3f}" for pair in RATES}
    print(told, means, border, loads)
    assert min(loads) >= CROWDED, "there was less to compete with than this test is about"
    for pair in border:
        promised = parse_bandwidth(RATES[pair])
        assert abs(frames[pair] - promised) <= TOLERANCE * promised, told


def ran_once(regions: Regions, name: str) -> None:
    """Of all parts of all tries, each task lived once, in one of the regions."""
    lived: dict[str, list[int]] = {}
    for cluster in regions.clusters.values():
        for each in cluster.client.jobs.list(name=name):
            for life in cluster.lives(each.id):
                lived.setdefault(life.task, []).append(life.incarnation)
    assert lived == {task: [1] for task in ("w-0-0", "w-1-0", "w-2-0")}, lived


def test_one_that_is_cancelled_at_home_ends_in_both(regions: Regions) -> None:
    near = regions.clusters["near"]
    job = near.submit(gang("cancelled", program("recorded", 600)))
    wait_for(
        lambda: [part.state for part in near.client.jobs.get(job).parts] == ["running"] * 2, "home hears that both run"
    )
    near.client.jobs.cancel(job)
    for cluster in regions.clusters.values():
        for each in cluster.client.jobs.list(name="cancelled"):
            cluster.await_state(each.id, "cancelled")


def test_a_part_that_fails_ends_the_other(regions: Regions) -> None:
    near = regions.clusters["near"]
    job = gang("breaks", program("recorded", 600))
    job["tasks"][2] |= program("recorded", LIFE_S, "3")
    found = near.submit(job)
    view = near.await_state(found, "failed")
    assert "its part in region" in (view.reason or "")


def also(*step: str) -> Any:
    return pytest.param(*step, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    ("region", "service", "fault"),
    [
        also("near", "federation", "split-held:1"),  # all is held; nobody has decided
        also("near", "federation", "split-decided:1"),  # it is decided; nobody has committed
        ("near", "federation", "split-commit:1"),  # one part is committed; home does not know
        also("near", "federation", "split-start:1"),  # one part starts; home does not know
        ("near", "manager", "split-decide:1"),  # the decision is written; who asked for it does not know
        also("far", "manager", "part-hold:1"),  # a part is submitted there; nobody knows
        also("far", "manager", "part-commit:1"),  # it is committed there; nobody knows
    ],
)
def test_whoever_dies_between_two_steps_no_task_is_lost_or_runs_twice(
    regions: Regions, region: str, service: str, fault: str
) -> None:
    starts = regions.clusters[region].arm(service, fault)
    wait_for(lambda: all(map(joined, regions.clusters.values())), "the regions know the link between them")
    name = f"{region}-{fault.replace(':', '-')}"
    near = regions.clusters["near"]
    near.finish(near.submit(gang(name, program("recorded", LIFE_S))))
    regions.clusters[region].await_start_of(service, starts + 1)
    ran_once(regions, name)
