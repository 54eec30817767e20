"""How long a stream stands still when the wire under it is gone: a ring of four hosts, a job of two tasks, real agents.

The wire is taken away with its devices, so that its ends notice at once. What is measured is the rest of the way:
report, commit, revision, commit, desired network, kernel, and TCP's own patience.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_experiments.common.command import Experiment
from ces_experiments.common.conditions import wait_for
from ces_experiments.common.console import told
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import milliseconds
from ces_testbed.cluster import Cluster
from ces_testbed.hosts import Hosts
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, free_port
from ces_testbed.topology import Topology

DIRECT, AROUND = ["n1", "n2"], ["n1", "n4", "n3", "n2"]
RECEIVER = "to-0"
AFTER_S = 1.5  # how long it is watched after it goes on

Samples = list[tuple[float, int]]  # time in CLOCK_BOOTTIME, bytes so far


@dataclass(frozen=True)
class Outage:
    """Seconds: nothing arrived for ``gap_s``; until traffic came over the new path after the wire was taken away,
    ``until_s``. ``rate``: bit/s of payload afterwards."""

    gap_s: float
    until_s: float
    rate: float


def ring() -> Topology:
    names = ["n1", "n2", "n3", "n4"]
    nodes = [{"name": name, "cpu": "2", "memory": "2Gi", "labels": {"host": name}} for name in names]
    links = [{"src": a, "dst": b, "bandwidth": "100Mbit"} for a, b in pairwise([*names, "n1"])]
    return Topology.model_validate({"nodes": nodes, "links": links})


def stream(seconds: float, **task: Any) -> dict[str, Any]:
    """A job that streams from n1 to n2, with 10 to 50 Mbit/s. ``task``: more of both tasks."""
    tasks = [
        {
            "name": name,
            "command": ["python", "-m", "ces_experiments.network.event_stream", str(seconds)],
            "resources": {"cpu": "500m", "memory": "64Mi"},
            "constraints": {"labels": {"host": host}},
            **task,
        }
        for name, host in (("from", "n1"), ("to", "n2"))
    ]
    edge = {"src": "from-0", "dst": RECEIVER, "bandwidth": {"min": "10Mbit", "max": "50Mbit"}}
    return {"name": "stream", "tasks": tasks, "flows": {"topology": "edges", "edges": [edge]}}


def path(client: Client, job: str) -> list[str]:
    return client.jobs.get(job).flows[0].path


def arrived(client: Client, job: str) -> Samples:
    said = [json.loads(line) for line in client.jobs.logs(job, RECEIVER) if line.startswith("{")]
    return [(line["t"], line["bytes"]) for line in said]


def outage(client: Client, hosts: Hosts, job: str) -> Outage:
    """Take the wire away under a running stream. Raises TestbedError where it does not go on."""
    died = time.clock_gettime(time.CLOCK_BOOTTIME)
    hosts.tear("n1", "n2")
    wait_for(lambda: path(client, job) == AROUND, "the flow has another path")
    wait_for(lambda: arrived(client, job)[-1][0] > died + AFTER_S, "the stream goes on")
    samples = arrived(client, job)
    gap, since = max((b[0] - a[0], a[0]) for a, b in pairwise(samples) if b[0] > died)
    until = since + gap
    end = until + AFTER_S
    wait_for(lambda: arrived(client, job)[-1][0] > end, "the stream goes on for a while")
    (t0, b0), *_, (t1, b1) = [sample for sample in arrived(client, job) if until <= sample[0]]
    return Outage(gap, until - died, (b1 - b0) * 8 / (t1 - t0))


def home(client: Client, hosts: Hosts, job: str) -> None:
    """Bring the wire back, and wait until the stream takes it again."""
    hosts.up()
    wait_for(lambda: path(client, job) == DIRECT, "the way is short again")
    last = arrived(client, job)[-1][1]
    wait_for(lambda: arrived(client, job)[-1][1] > last, "the stream goes on")


def measure(question: Mapping[str, int], progress: Progress) -> Found:
    """A cluster of its own, ``rounds`` wires one after the other. Raises TestbedError."""
    outages, say = [], told(progress, question["rounds"])
    with TemporaryDirectory(prefix="ces-reroute-") as folder:
        port = free_port(LOCALHOST, set())
        spec = ClusterSpec(name="reroute", topology=ring(), network="tc", api_port=port, save_context=False)
        cluster = Cluster(spec, Files(Path(folder)))
        try:
            cluster.start()
            with cluster.client() as client:
                job = client.jobs.submit(stream(3600)).id
                wait_for(lambda: client.jobs.get(job).state == "running", "the job runs")
                wait_for(lambda: len(arrived(client, job)) > 20, "the stream runs")
                for number in range(question["rounds"]):
                    outages.append(outage(client, cluster.hosts, job))
                    say(f"wire {number + 1}: still for {outages[-1].gap_s * 1000:.0f} ms")
                    home(client, cluster.hosts, job)
                client.jobs.cancel(job)
        finally:
            cluster.stop()
    return Found(
        {
            "until_ms": milliseconds(each.until_s for each in outages),
            "gap_ms": milliseconds(each.gap_s for each in outages),
            "outages": [asdict(each) for each in outages],
        }
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """How long it took."""
    times = {"until traffic came on the other way": results["until_ms"], "nothing arrived for": results["gap_ms"]}
    rows = [[what, *map(str, found.values())] for what, found in times.items()]
    return [Grid("Milliseconds from the loss of a wire.", ("what", "p50", "p90", "p99", "worst", "n"), rows)]


REROUTE = Experiment(dict, measure, Report(tables))
