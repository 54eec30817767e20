"""The torch.distributed program of the examples trains on while CES changes the number of its workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from fault_cluster import FaultCluster, environments, hops, kill_worker
from resized_jobs import await_size, takes_room
from waiting import wait_for

from ces_common.messages.api import JobView
from ces_testbed.spec import LOCALHOST, free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = EXAMPLES / "torch_elastic.py"
PATIENCE_S = 480  # four processes import torch on two cores; a job grows after three times what a resize took it
EVERY = 20
ENDLESS = ["--steps", "1000000", "--every", str(EVERY)]

pytestmark = [pytest.mark.needs("torch"), pytest.mark.timeout(2400)]


def example(*command: str, **elastic: str) -> dict[str, Any]:
    """The example's file with another command; each worker takes half a host."""
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / "jobs" / "elastic-ddp.yaml").read_text())
    (group,) = job["tasks"]
    del group["script"]
    group["command"], group["resources"]["cpu"] = list(command), "1"
    job["elastic"] |= elastic
    return job


class Training:
    """What rank 0 says of its training, over all its starts."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def _all(self, kind: str) -> list[dict[str, Any]]:
        return [line[kind] for text in list(self._lines) if text.startswith("{") and kind in (line := json.loads(text))]

    @property
    def begins(self) -> list[tuple[int, int]]:
        """The number of ranks at each start, and after which step it goes on."""
        return [(said["ranks"], said["step"]) for said in self._all("begins")]

    @property
    def steps(self) -> list[int]:
        return [said["round"] for said in self._all("progress")]

    @property
    def results(self) -> list[dict[str, Any]]:
        return self._all("result")

    @property
    def losses(self) -> list[float]:
        return [said["loss"] for said in self._all("progress")]

    def await_steps(self, start: int, ranks: int) -> None:
        """Until it has trained a while after so many starts, the last of which is at that size."""

        def trains() -> bool:
            begins = self.begins
            assert len(begins) <= start, f"it has started more often than {start} times: {begins}"
            return len(begins) == start and self.steps[-1:] > [begins[-1][1] + 2 * EVERY]

        wait_for(trains, f"start {start} trains: {self.begins}", PATIENCE_S)
        assert self.begins[-1][0] == ranks


@contextmanager
def followed(cluster: FaultCluster, job: str) -> Iterator[Training]:
    """The training of a job that is over in the end, all of whose log was read then."""
    lines: list[str] = []

    def follow() -> None:
        with closing(cluster.cluster.client()) as client:
            for line in client.jobs.logs(job, "rank-0", follow=True):
                lines.append(line)  # seen at once

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    yield Training(lines)
    reader.join(PATIENCE_S)
    assert not reader.is_alive()


def alone(folder: Path, steps: int) -> Training:
    """The same training by one process that nobody interrupts."""
    where = {"MASTER_ADDR": LOCALHOST, "MASTER_PORT": str(free_port(LOCALHOST, set())), "CES_CHECKPOINT": str(folder)}
    environment = os.environ | where | {"RANK": "0", "WORLD_SIZE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), "--steps", str(steps)]
    told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return Training(told.stdout.splitlines())


def has_its_ring(cluster: FaultCluster, job: str, size: int, *others: str) -> None:
    """Its flows are those of its size, and links hold what flows were given, and no more."""
    view = await_size(cluster, job, size, PATIENCE_S)
    ring = {(f"rank-{i}", f"rank-{(i - 1) % size}") for i in range(size)} if size > 1 else set()
    assert {(flow.src, flow.dst) for flow in view.flows} == ring
    assert all(5_000_000 <= (flow.rate or 0) <= 40_000_000 for flow in view.flows)

    def given() -> Counter[tuple[str, str]]:
        views: list[JobView] = [cluster.client.jobs.get(each) for each in (job, *others)]
        flows = [flow for each in views for flow in each.flows]
        rates = Counter[tuple[str, str]]()
        for flow in flows:
            for hop in hops(flow.path):
                rates[hop] += flow.rate or 0
        return rates

    def held() -> Counter[tuple[str, str]]:
        return Counter({(link.src, link.dst): link.reserved for link in cluster.client.topology.links()})

    wait_for(lambda: given() == +held(), "links hold what flows were given")


@contextmanager
def running(cluster: FaultCluster, job: dict[str, Any], size: int = 4) -> Iterator[tuple[str, Training]]:
    """A job that trains at its largest size, and what it says; cancelled in the end."""
    name = cluster.submit(job)
    with followed(cluster, name) as training:
        try:
            has_its_ring(cluster, name, size)
            training.await_steps(1, size)
            yield name, training
        finally:
            cluster.client.jobs.cancel(name)
            cluster.await_state(name, "cancelled", timeout_s=PATIENCE_S)


def trains_through_sizes(
    cluster: FaultCluster, folder: Path, *command: str, at: Callable[[str, int], None] = lambda *_: None
) -> Training:
    """It makes room for a rigid job and goes on alone, and grows into four workers again. ``at`` is called with job and
    size while it trains at each."""
    with running(cluster, example(*command, *ENDLESS)) as (job, training):
        at(job, 4)
        other = takes_room(cluster, folder / "rigid", 7, job, 1, PATIENCE_S)
        has_its_ring(cluster, job, 1, other)
        training.await_steps(2, 1)
        at(job, 1)
        (folder / "rigid").unlink()
        cluster.finish(other)
        has_its_ring(cluster, job, 4)
        training.await_steps(3, 4)
        at(job, 4)
    return training


def is_as_without_a_break(training: Training, folder: Path) -> None:
    """No step is lost or repeated, and each has the loss that it has in a training that nobody interrupts."""
    assert [ranks for ranks, _ in training.begins[:3]] == [4, 1, 4]
    assert training.steps == list(range(1, len(training.steps) + 1))
    steps = [step for _, step in training.begins]
    assert steps[0] == 0
    assert all(second - first > EVERY for first, second in pairwise(steps))
    reference = alone(folder, len(training.steps))
    assert training.losses == pytest.approx(reference.losses, abs=0.01)


def test_it_trains_on_at_every_size(resizing: FaultCluster, open_folder: Path, tmp_path: Path) -> None:
    training = trains_through_sizes(resizing, open_folder, "python", str(PROGRAM))
    is_as_without_a_break(training, tmp_path)


def programs_of(job: str) -> list[tuple[int, dict[str, str]]]:
    """Process ids and environments of what torchrun started for a job."""
    return [(pid, env) for pid, env in environments() if env.get("CES_JOB") == job and "TORCHELASTIC_RUN_ID" in env]


@pytest.mark.soak
def test_torchrun_begins_again_at_every_size(resizing: FaultCluster, open_folder: Path, tmp_path: Path) -> None:
    rendezvous: list[str] = []

    def has_met(job: str, size: int) -> None:
        """All of its programs, and no others, were started by one rendezvous that was not there before, as CES's
        ranks."""
        programs = [env for _, env in programs_of(job)]
        told = sorted((env["RANK"], env["CES_TASK"], env["WORLD_SIZE"], env["GROUP_WORLD_SIZE"]) for env in programs)
        assert told == [(str(rank), f"rank-{rank}", str(size), str(size)) for rank in range(size)]
        (met,) = {env["TORCHELASTIC_RUN_ID"] for env in programs}
        assert met not in rendezvous
        rendezvous.append(met)

    training = trains_through_sizes(resizing, open_folder, "torchrun", str(PROGRAM), at=has_met)
    assert len(rendezvous) == 3
    is_as_without_a_break(training, tmp_path)


def test_without_time_to_write_it_loses_one_interval_at_most(resizing: FaultCluster, open_folder: Path) -> None:
    with running(resizing, example("torchrun", str(PROGRAM), *ENDLESS, grace="0s")) as (job, training):
        other = takes_room(resizing, open_folder / "rigid", 6, job, 2, PATIENCE_S)
        training.await_steps(2, 2)
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    loses_one_interval_at_most(training)


def loses_one_interval_at_most(training: Training) -> None:
    (_, step) = training.begins[1]
    steps = training.steps
    done = next((first for first, second in pairwise(steps) if second != first + 1), step)
    assert steps == [*range(1, done + 1), *range(step + 1, steps[-1] + 1)]
    assert done - EVERY <= step <= done + 1, "it may have ended between a checkpoint and saying so"


@pytest.mark.soak
def test_a_program_that_dies_costs_one_interval_at_most(cluster: FaultCluster) -> None:
    """torchrun gives up, and CES starts all of them again in their places."""
    job = example("torchrun", str(PROGRAM), *ENDLESS) | {"restart": {"policy": "on-failure", "max": 1}}
    job["elastic"]["workers"] = {"min": 2, "max": 2}
    with running(cluster, job, 2) as (name, training):
        (last,) = [pid for pid, env in programs_of(name) if env["RANK"] == "1"]
        kill_worker(last)
        training.await_steps(2, 2)
        assert cluster.client.jobs.get(name).restarts == 1
        assert len({env["TORCHELASTIC_RUN_ID"] for _, env in programs_of(name)}) == 1
    loses_one_interval_at_most(training)


def test_the_example_trains_to_its_end(cluster: FaultCluster) -> None:
    job = example("python", str(PROGRAM))
    job["tasks"][0]["resources"]["cpu"] = "700m"
    begun = cluster.submit(job)
    await_size(cluster, begun, 4, PATIENCE_S)
    cluster.finish(begun, timeout_s=PATIENCE_S)
    (result,) = Training(list(cluster.client.jobs.logs(begun, "rank-0"))).results
    assert result["steps"] == 400
    assert result["accuracy"] > 0.9
