"""Data that lies on a node is read by the workers that may read it, as fast as was reserved, and by nobody else."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from fault_cluster import FaultCluster, program, running, wait_for
from reading_jobs import address_of, digest, hosts, offered, reader, reading, said

from ces_client.errors import CesError

EXAMPLES = Path(__file__).parents[2] / "examples" / "jobs"
FILE = "mnist/train/images"
CONTENT = random.Random(7).randbytes(12_000_000)
TOLERANCE = 0.10

PROCESS = pytest.param("process", marks=pytest.mark.needs("root"))
DOCKER = pytest.param("docker", marks=pytest.mark.needs("root", "engine"))


def idx(values: np.ndarray) -> bytes:
    """A file in MNIST's format."""
    header = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    return gzip.compress(header + values.astype(np.uint8).tobytes())


@pytest.fixture(scope="module", params=[PROCESS, DOCKER])
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    if request.param == "docker":
        from worker_images import ensure_images

        ensure_images()
    root = tmp_path_factory.mktemp("datasets")
    for name in ("mnist/train", "words"):
        (root / name).mkdir(parents=True)
    (root / FILE).write_bytes(CONTENT)
    (root / "words" / "list").write_text("one two")
    generator = np.random.default_rng(0)
    for name, values in (
        ("t10k-images-idx3-ubyte.gz", generator.integers(0, 256, (60, 4, 6))),
        ("t10k-labels-idx1-ubyte.gz", generator.integers(0, 10, 60)),
    ):
        (root / "mnist" / name).write_bytes(idx(values))
    folder = tmp_path_factory.mktemp("inp")
    with running(f"inp{request.param[0]}", folder, hosts(root), runtime=request.param) as cluster:
        wait_for(lambda: offered(cluster) == ["mnist", "words"], "n1 tells what it offers")
        yield cluster


@pytest.fixture
def cluster(started: FaultCluster) -> Iterator[FaultCluster]:
    yield started
    started.check()


@pytest.mark.alone
def test_the_right_bytes_come_at_the_reserved_rate(cluster: FaultCluster) -> None:
    """While strangers send as much as they can, both ways, over the same links."""
    rate = 20_000_000
    strangers = [reader(f"s{i}", f"n{i}") | program("traffic", 60, "flood") for i in (1, 2)]
    flooding = cluster.submit({"name": "flooding", "tasks": strangers})
    cluster.await_state(flooding, "running")
    exactly = {"min": str(rate), "max": str(rate)}
    job = cluster.submit(reading("far", "n2", FILE, "once", bandwidth=exactly))
    carried: dict[str, float] = {}  # by the node that sent it on

    def over() -> bool:
        for flow in cluster.client.jobs.flows(job).flows:
            for hop in flow.hops:
                carried[hop.src] = max([carried.get(hop.src, 0.0), *(sample.measured for sample in hop.samples)])
        return cluster.client.jobs.get(job).state == "succeeded"

    wait_for(over, "the data is read", pause_s=0.5)
    cluster.client.jobs.cancel(flooding)
    view = cluster.client.jobs.get(job)
    (flow,) = view.flows
    assert (flow.src, flow.dst, flow.path, flow.rate) == ("@n1", "r-0", ["n1", "s1", "n2"], rate)
    assert flow.enforced
    (answer,) = said(cluster, job)
    assert (answer["status"], answer["bytes"], answer["sha256"]) == (200, len(CONTENT), digest(CONTENT))
    (t0, b0), (t1, b1) = answer["samples"][0], answer["samples"][-1]
    payload = (b1 - b0) * 8 / (t1 - t0)
    print(f"{payload / 1e6:.3f} of {rate / 1e6:g} Mbit/s as payload; classes carried {carried}")
    assert rate * 0.5 <= payload <= rate * (1 + TOLERANCE)
    assert carried.keys() == {"n1", "s1"}, "the class of the flow carried it on both links"
    assert all(rate * 0.5 <= found <= rate * (1 + TOLERANCE) for found in carried.values())


def test_a_task_beside_the_data_reads_it_alike(cluster: FaultCluster) -> None:
    view = cluster.finish(cluster.submit(reading("near", "n1", FILE, "once")))
    assert view.flows[0].path == ["n1"]
    (answer,) = said(cluster, view.id)
    assert (answer["status"], answer["sha256"]) == (200, digest(CONTENT))


@pytest.mark.parametrize("started", [PROCESS], indirect=True)
def test_training_reads_its_images_where_they_lie(cluster: FaultCluster) -> None:
    job = yaml.safe_load((EXAMPLES / "mnist-inputs.yaml").read_text())
    (group,) = job["tasks"]
    group["replicas"] = 2
    group["command"] += ["--rounds", "2", "--hidden", "8"]
    job["flows"]["inputs"] = [each | {"node": "n1"} for each in job["flows"]["inputs"][:2]]
    view = cluster.finish(cluster.submit(job))
    for task in view.placement:
        lines = cluster.client.jobs.logs(view.id, task.name)
        assert any("mnist on node n1 (CES_INPUTS): 48 images to train on, 12 held out" in line for line in lines)


def test_what_was_not_asked_for_cannot_be_read(cluster: FaultCluster) -> None:
    words = cluster.finish(cluster.submit(reading("words", "n2", FILE, "once", datasets=["words"])))
    assert [line["status"] for line in said(cluster, words.id)] == [403]
    everything = reading("all", "n2", "words/list", "once")
    del everything["flows"]["inputs"][0]["datasets"]
    done = cluster.finish(cluster.submit(everything))
    assert [line["bytes"] for line in said(cluster, done.id)] == [len("one two")]


def test_another_jobs_worker_reads_nothing(cluster: FaultCluster) -> None:
    owner = cluster.submit(reading("owner", "n2", "words/list", "forever", datasets=["words"]))
    cluster.await_state(owner, "running")
    wait_for(lambda: any(line.get("status") == 200 for line in said(cluster, owner)), "its own worker reads")
    address = address_of(cluster, owner)
    # Beside the data, beside the reader, elsewhere; and a worker of the job of another that reads itself.
    tasks = [reader(f"t{i}", f"n{i}", "words/list", "once", address) for i in (1, 2, 3)]
    folder = cluster.cluster.spec.topology.nodes[0].datasets
    looking = {"command": ["python", "-c", f"import os; raise SystemExit(os.path.exists('{folder}/words'))"], "env": {}}
    tasks.append(reader("l", "n1") | looking)  # nor does it see the disk
    strangers = cluster.finish(cluster.submit({"name": "strangers", "tasks": tasks}))
    for task in strangers.placement[:3]:
        (tried,) = said(cluster, strangers.id, task.name)
        assert "error" in tried, tried
    job = reading("half", "n2", "words/list", "once", datasets=["words"])
    job["tasks"].append(reader("without", "n3", "words/list", "once", address))
    half = cluster.finish(cluster.submit(job))
    assert said(cluster, half.id)[0]["status"] == 200
    assert "error" in said(cluster, half.id, "without-0")[0], "the same job's task that did not ask for it"
    cluster.client.jobs.cancel(owner)


def test_readers_outlive_the_agent_that_serves_them(cluster: FaultCluster) -> None:
    job = cluster.submit(reading("patient", "n2", "words/list", "forever", datasets=["words"]))
    cluster.await_state(job, "running")
    wait_for(lambda: any(line.get("status") == 200 for line in said(cluster, job)), "it reads")
    service = "agent-n1"
    starts = cluster.cluster.supervisor.starts(service)
    cluster.cluster.kill(service, stay_down=True)
    wait_for(lambda: "error" in said(cluster, job)[-1], "nobody serves")
    cluster.cluster.restart(service)
    cluster.await_start_of(service, starts + 1)
    wait_for(lambda: said(cluster, job)[-1].get("status") == 200, "it reads again, at the same address")
    view = cluster.client.jobs.get(job)
    assert (view.state, view.attempt, view.restarts) == ("running", 1, 0)
    cluster.client.jobs.cancel(job)


def test_data_that_nobody_offers_is_refused_by_name(cluster: FaultCluster) -> None:
    with pytest.raises(CesError, match=r"flows.inputs\[0\].datasets\[0\].*offers no dataset birds, only mnist, words"):
        cluster.client.jobs.submit(reading("birds", "n2", FILE, "once", datasets=["birds"]))
    with pytest.raises(CesError, match=r"flows.inputs\[0\].node.*n2 offers no data: set CES_DATASETS"):
        cluster.client.jobs.submit(reading("elsewhere", "n3", FILE, "once", node="n2"))
