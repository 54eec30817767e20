"""What a plan promises is what arrives: measured with real traffic between real workers, under pressure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fault_cluster import FaultCluster, program, recorded_job, running, star, wait_for
from measured_traffic import arrived, rate, said, usual_rate

from ces_common.messages.api import JobView
from ces_common.quantities import parse_bandwidth

pytestmark = pytest.mark.alone
EXAMPLES = Path(__file__).parents[2] / "examples" / "jobs"
SEND_S = 14.0
WARM_S = 2.0  # TCP finds its rate, and every worker has begun
TOLERANCE = 0.10
BEST_EFFORT = 0.02  # of a link, for all that reserved nothing
LINK = 100_000_000
RATES = {  # over two hops each; both directions of every pair, all at once
    ("w-0", "w-1"): "8Mbit",
    ("w-1", "w-0"): "12Mbit",
    ("w-1", "w-2"): "20Mbit",
    ("w-2", "w-1"): "4Mbit",
    ("w-2", "w-0"): "1Mbit",
    ("w-0", "w-2"): "16Mbit",
}


PROCESS = pytest.param("process", marks=pytest.mark.needs("root"))
DOCKER = pytest.param("docker", marks=pytest.mark.needs("root", "engine"))


@pytest.fixture(scope="module", params=[PROCESS, DOCKER])
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    if request.param == "docker":
        from worker_images import ensure_images

        ensure_images()
    with running(f"net{request.param[0]}", tmp_path_factory.mktemp("net"), star(3), runtime=request.param) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: FaultCluster) -> Iterator[FaultCluster]:
    yield started
    started.check()


def placed(name: str, host: str, command: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "image": "ces-worker-test",
        "resources": {"cpu": "500m", "memory": "128Mi"},
        "constraints": {"labels": {"host": host}},
        **command,
    }


def filling_job() -> dict[str, Any]:
    edges = [
        {"src": f"{src}-0", "dst": f"{dst}-0", "bandwidth": {"min": rate, "max": rate}}
        for (src, dst), rate in RATES.items()
    ]
    tasks = [placed(f"w-{i}", f"n{i + 1}", program("traffic", SEND_S, "flows")) for i in range(3)]
    return {"name": "filling", "tasks": tasks, "flows": {"topology": "edges", "edges": edges}}


def flooding_job(seconds: float) -> dict[str, Any]:
    tasks = [placed(f"s-{i}", f"n{i + 1}", program("traffic", seconds, "flood")) for i in range(3)]
    return {"name": "flooding", "tasks": tasks}


def test_every_flow_gets_what_was_promised(cluster: FaultCluster) -> None:
    flooding = cluster.submit(flooding_job(60))
    cluster.await_state(flooding, "running")
    job = cluster.submit(filling_job())
    running_view = cluster.await_state(job, "running")
    assert {len(flow.path) for flow in running_view.flows} == {3}
    assert all(flow.enforced for flow in running_view.flows)
    peaks: dict[tuple[str, str], float] = {}
    carried: dict[tuple[str, str, str], float] = {}  # by flow, and the node that sent it on
    short: list[str] = []

    def over() -> bool:
        for seen in cluster.client.jobs.flows(job).flows:
            for hop in seen.hops:
                if hop.samples:
                    key = seen.src, seen.dst, hop.src
                    carried[key] = max(carried.get(key, 0.0), hop.samples[-1].measured)
            if seen.shortfall is not None:
                short.append(seen.shortfall.text)
        view = cluster.client.jobs.get(job)
        for flow in view.flows:
            if flow.measured:
                peaks[flow.src, flow.dst] = max(peaks.get((flow.src, flow.dst), 0.0), flow.measured)
        return view.state == "succeeded"

    wait_for(over, "the job is done", pause_s=0.5)
    view = cluster.client.jobs.get(job)
    floods = cluster.client.jobs.get(flooding)
    lines, flood_lines = said(cluster, view), said(cluster, floods)
    cluster.client.jobs.cancel(flooding)

    streams = arrived(lines)
    desired = {(f"{src}-0", f"{dst}-0"): parse_bandwidth(text) for (src, dst), text in RATES.items()}
    assert streams.keys() == desired.keys()
    since = max(samples[0][0] for samples in streams.values()) + WARM_S
    until = min(samples[-1][0] for samples in streams.values())
    assert until - since > SEND_S / 2
    measured = {pair: usual_rate(samples, since, until) for pair, samples in streams.items()}
    report = {pair: f"{measured[pair] / 1e6:.2f} of {desired[pair] / 1e6:g} Mbit/s" for pair in desired}
    print(report)
    for pair, allocated in desired.items():
        assert abs(measured[pair] - allocated) <= TOLERANCE * allocated, report
        assert abs(peaks[pair] - allocated) <= TOLERANCE * allocated, peaks  # what CES itself says of it
        hops = [found for key, found in carried.items() if key[:2] == pair]
        assert len(hops) == 2, "its own node tells, and the one between that sends it on"
        assert all(abs(found - allocated) <= TOLERANCE * allocated for found in hops), carried
    assert short == [], "what was given has arrived"

    # Until the first worker ends: whoever knocks at its door afterwards finds nobody in.
    fresh = [line for line in lines if "fresh" in line and line["t"] <= until]
    assert {(line["task"], line["fresh"]) for line in fresh} == desired.keys()
    assert all(line["ok"] for line in fresh), [line for line in fresh if not line["ok"]]

    received = defaultdict(int)
    for line in flood_lines:
        if since <= line["t"] <= until and "received" in line:
            received[line["task"], line["t"]] = sum(line["received"].values())
    for task in {key[0] for key in received}:
        samples = sorted((t, count) for (name, t), count in received.items() if name == task)
        # Two senders beside its own node share its last link's bounded class.
        assert rate(samples, since, until) <= BEST_EFFORT * LINK * (1 + TOLERANCE)


def test_an_elastic_flow_borrows_what_another_reserved_and_does_not_use(cluster: FaultCluster) -> None:
    held, least, most = 80_000_000, 5_000_000, 60_000_000

    def pair(name: str, low: int, high: int, mode: str, command: dict[str, Any]) -> dict[str, Any]:
        edge = {"src": f"{name}-0-0", "dst": f"{name}-1-0", "bandwidth": {"min": str(low), "max": str(high)}}
        tasks = [placed(f"{name}-{i}", f"n{i + 1}", command) for i in range(2)]
        return {"name": name, "tasks": tasks, "flows": {"topology": "edges", "mode": mode, "edges": [edge]}}

    holding = cluster.submit(pair("idle", held, held, "strict", program("recorded", 120)))
    cluster.await_state(holding, "running")
    job = cluster.submit(pair("elastic", least, most, "elastic", program("traffic", 8, "flows")))
    view = cluster.finish(job)
    cluster.client.jobs.cancel(holding)
    given = view.flows[0].rate
    assert given is not None
    assert least <= given <= LINK - held
    (samples,) = arrived(said(cluster, view)).values()
    measured = rate(samples, samples[0][0] + WARM_S, samples[-1][0])
    assert 2 * given < measured <= most * (1 + TOLERANCE)


def test_a_job_trains_over_two_hops(cluster: FaultCluster) -> None:
    job = yaml.safe_load((EXAMPLES / "digits-ring.yaml").read_text())
    job["tasks"][0]["replicas"] = 3
    job["tasks"][0]["command"] += ["--target-accuracy", "0.85"]
    job["tasks"][0]["resources"]["cpu"] = "1200m"  # one on each host
    found = cluster.submit(job)
    view = cluster.finish(found)
    assert {len(flow.path) for flow in view.flows} == {3}
    for flow in view.flows:
        assert flow.rate is not None
        assert flow.peak is not None
        assert 0 < flow.peak <= flow.rate * (1 + TOLERANCE)
    for task in view.placement:
        assert task.progress is not None
        assert task.progress["accuracy"] > 0.8, task.progress


@pytest.mark.parametrize("started", [DOCKER], indirect=True)
def test_an_unknown_image_ends_its_job(cluster: FaultCluster) -> None:
    job = recorded_job("no-image", 1, "hang", replicas=2)
    job["tasks"].append({"name": "x", "image": "ces-worker-nobody-made", "command": ["true"]})
    found = cluster.submit(job)
    view = cluster.await_state(found, "failed")
    assert "x-0 could not be started on" in (view.reason or "")
    assert "ces-worker-nobody-made" in (view.reason or "")
    wait_for(lambda: not cluster.worker_pids(found), "its peers are stopped")


@pytest.mark.parametrize("started", [DOCKER], indirect=True)
def test_an_agent_finds_its_containers_again(cluster: FaultCluster) -> None:
    found = cluster.submit(recorded_job("kill-docker-agent", 8))
    view = cluster.await_state(found, "running")
    pids = cluster.worker_pids(found)
    service = f"agent-{view.placement[0].node}"
    starts = cluster.cluster.supervisor.starts(service)
    cluster.cluster.kill(service)
    cluster.await_start_of(service, starts + 1)
    assert cluster.worker_pids(found) == pids
    view = cluster.finish(found)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(found)] == [1, 1, 1]


def test_workers_of_another_job_are_out_of_reach(cluster: FaultCluster) -> None:
    victims = cluster.submit(flooding_job(8))
    view = cluster.await_state(victims, "running")
    addresses = {task.address for task in view.placement}
    assert len(addresses) == 3
    targets = [f"{address}:29400" for address in sorted(filter(None, addresses))]
    tasks = [placed(f"k-{i}", f"n{i + 1}", program("stranger", *targets)) for i in range(2)]
    knocking = cluster.finish(cluster.submit({"name": "knocking", "tasks": tasks}))
    outcomes = said_by_stranger(cluster, knocking)
    assert len(outcomes) == 2 * (1 + len(targets))
    assert {how for target, how in outcomes if target == "itself"} == {"connected"}
    assert "connected" not in {how for target, how in outcomes if target != "itself"}
    done = cluster.finish(victims)
    strangers = {task.address for task in knocking.placement}
    heard = {
        source.partition(" ")[2]
        for line in said(cluster, done)
        for source in line.get("received", {})
        if source.startswith("udp")
    }
    assert heard == addresses
    assert not heard & strangers


def said_by_stranger(cluster: FaultCluster, view: JobView) -> list[tuple[str, str]]:
    return [(line["target"], line["tcp"]) for line in said(cluster, view)]
