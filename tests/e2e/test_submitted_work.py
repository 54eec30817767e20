"""Training and experiments as malleable jobs of a cluster come to what one machine comes to, whatever befalls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_cluster import FaultCluster, running, star
from resized_jobs import await_size, takes_room
from waiting import wait_for

from ces_testbed.services import agent_name
from ces_testbed.spec import Timing

CES = (sys.executable, "-c", "from ces_client.cli.app import main; main()")
TIMING = Timing(lease_s=7, lease_margin_s=3, unreachable_s=4)
SETTINGS = {"CES_CHECKPOINT_COPY_S": "1", "CES_RESIZE_S": "1"}
PATIENCE_S = 240  # four processes import torch on two cores
UPDATES = 40
TRAIN = ("train", "es", "--env", "placement", "--seed", "3", "--updates", UPDATES, "--evaluate-every", UPDATES)
SMALL = ("--pairs", 4, "--width", 16, "--validation", 2)
BENCH = ("bench", "longrun", "--regime", "thesis", "--loads", "0.9,1.1", "--nodes", 6, "--jobs", 20, "--repeats", 3)
GREEDY = ("--solvers", "greedy,search-longrun", "--seed", 5, "--no-plots")
SUBMIT = ("--submit", "--workers", "1:4", "--memory", "900Mi")

pytestmark = [pytest.mark.needs("root", "torch"), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def _eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with running("sub", tmp_path_factory.mktemp("sub"), star(4), timing=TIMING, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def eager(_eager: FaultCluster) -> Iterator[FaultCluster]:
    """A cluster that resizes jobs each second, and copies checkpoints as often."""
    yield _eager
    _eager.check()


def ces(*words: object, cluster: FaultCluster | None = None, output: Path) -> subprocess.Popen[bytes]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("CES_")}
    if cluster is not None:
        own |= {"CES_URL": cluster.cluster.url, "CES_TOKEN": cluster.cluster.token}
    own["CES_CONTEXT"] = str(output.parent / "context.json")
    with output.open("wb") as file:
        return subprocess.Popen([*CES, *map(str, words)], env=own, stdout=file, stderr=subprocess.STDOUT)


def ended_well(process: subprocess.Popen[bytes], output: Path) -> str:
    assert process.wait(PATIENCE_S * 2) == 0, output.read_text()
    return output.read_text()


def job_named(cluster: FaultCluster, name: str) -> str:
    wait_for(lambda: cluster.client.jobs.latest(name), f"{name} is submitted", PATIENCE_S)
    found = cluster.client.jobs.latest(name)
    assert found is not None
    return found.id


def step_of(cluster: FaultCluster, job: str) -> int:
    placement = cluster.client.jobs.get(job).placement
    progress = (placement[0].progress if placement else None) or {}
    return int(progress.get("progress", progress).get("step", 0))


def copies(cluster: FaultCluster, job: str) -> int:
    """How many copies of checkpoints of its present attempt were told of: at another size, others do not count."""
    attempt = cluster.client.jobs.get(job).attempt
    copied = [event["data"] for event in cluster.events() if event["type"] == "ces.v1.checkpoint.copied"]
    return sum(data["job"] == job and data["attempt"] == attempt for data in copied)


def test_training_goes_through_sizes_and_a_lost_node_to_what_one_process_comes_to(
    eager: FaultCluster, open_folder: Path, tmp_path: Path
) -> None:
    output, said = tmp_path / "alone.txt", tmp_path / "submitted.txt"
    ended_well(ces(*TRAIN, *SMALL, "--out", tmp_path / "alone", output=output), output)

    submitted = ces(*TRAIN, *SMALL, *SUBMIT, "--out", tmp_path / "submitted", cluster=eager, output=said)
    job = job_named(eager, "train-es-placement")
    await_size(eager, job, 4, PATIENCE_S)
    wait_for(lambda: step_of(eager, job) >= 2, "four ranks learn", PATIENCE_S)

    # three are on two nodes at least; two might share one, and nothing would be copied
    other = takes_room(eager, open_folder / "rigid", 5, job, 3, PATIENCE_S)
    here = step_of(eager, job)
    wait_for(lambda: step_of(eager, job) >= here + 2, "three ranks learn", PATIENCE_S)
    wait_for(lambda: copies(eager, job) > 0, "a checkpoint is copied", PATIENCE_S)

    before = eager.client.jobs.get(job)
    first = before.placement[0].node
    assert first is not None
    eager.cluster.kill(agent_name(first), stay_down=True)
    # Nothing else places it again: as long as the rigid job is there, it cannot grow.
    wait_for(lambda: eager.client.jobs.get(job).attempt > before.attempt, "it is placed again", PATIENCE_S)
    eager.cluster.restart(agent_name(first))
    (open_folder / "rigid").unlink()
    eager.finish(other)

    text = ended_well(submitted, said)
    assert "es learns placement with 4 ranks\n" in text
    starts = [line for line in text.splitlines() if line.endswith(" from its checkpoint")]
    assert len(starts) >= 2, f"after a resize, and after its node was lost:\n{text}"
    assert starts[0] == "es learns placement with 3 ranks from its checkpoint"
    assert f"update {UPDATES}/{UPDATES}" in text

    one, many = (json.loads((tmp_path / name / "model-card.json").read_text()) for name in ("alone", "submitted"))
    for value in ("version", "scores", "steps", "updates", "complete"):
        assert many[value] == one[value]
    assert (tmp_path / "submitted" / "checkpoint.pt").exists(), "the run may go on here"


def test_an_experiment_finds_what_it_finds_alone(eager: FaultCluster, tmp_path: Path) -> None:
    said, output = tmp_path / "submitted.txt", tmp_path / "alone.txt"
    alone = ces(*BENCH, *GREEDY, "--out", tmp_path / "alone", output=output)
    submitted = ces(*BENCH, *GREEDY, *SUBMIT, "--out", tmp_path / "submitted", cluster=eager, output=said)
    ended_well(alone, output)
    ended_well(submitted, said)
    one, many = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("alone", "submitted"))
    assert many["regimes"] == one["regimes"]
    assert (tmp_path / "submitted" / "tables.md").exists()
