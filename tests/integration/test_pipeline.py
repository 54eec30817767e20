"""A pipeline of processes on loopback addresses: requests go around, latencies are told, and all end together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_state import job, node, view_of
from training_gang import LIMIT, free_port, wait_for_line

from ces_common.jobfile import JobFile
from ces_common.messages.records import AllocationRecord
from ces_common.states import JobState
from ces_compute_ctl.desired_compute import Planner

EXAMPLES = Path(__file__).parents[2] / "examples" / "applications"
Lines = list[dict[str, Any]]


class Pipeline:
    """The workers of an example, told what compute-ctl would tell them."""

    def __init__(self, example: str, *arguments: str) -> None:
        self.arguments = arguments
        file = JobFile.model_validate(yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text()))
        tasks = file.expand_tasks()
        prefix = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 200}"
        places = [
            AllocationRecord(
                id=f"a{task.rank}",
                task=task.name,
                rank=task.rank,
                node="n1",
                address=(address := f"{prefix}.{task.rank + 2}"),
                port=free_port(address),
            )
            for task in tasks
        ]
        record = job(file.name).model_copy(
            update={"tasks": tasks, "flows": file.expand_flows(), "users": file.users, "requests": file.requests}
        )
        record = record.model_copy(update={"state": JobState.RUNNING, "allocations": places})
        view = view_of([node("n1", network="none")], [], [record])
        self.desired = {each.task: each for each in Planner().plan(view)["n1"].workers}
        self.workers: dict[str, subprocess.Popen[str]] = {}

    def start(self, tasks: Sequence[str] = ()) -> None:
        for name in tasks or self.desired:
            each = self.desired[name]
            self.workers[name] = subprocess.Popen(
                [sys.executable, *each.command[1:], *self.arguments],
                env={**os.environ, **each.env},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def outcome(self, task: str) -> tuple[int, Lines, str]:
        out, err = self.workers[task].communicate(timeout=LIMIT)
        return self.workers[task].returncode, [json.loads(line) for line in out.splitlines()], err

    def stop(self) -> None:
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.kill()
            worker.communicate()


@pytest.fixture
def made() -> Iterator[list[Pipeline]]:
    pipelines: list[Pipeline] = []
    yield pipelines
    for each in pipelines:
        each.stop()


def started(made: list[Pipeline], example: str, *arguments: str) -> Pipeline:
    made.append(Pipeline(example, *arguments))
    made[-1].start()
    return made[-1]


@pytest.mark.timeout(90)
def test_requests_go_around_and_their_latency_is_told(made: list[Pipeline]) -> None:
    pipeline = started(made, "complex", "--seconds", "4")
    ended = {task: pipeline.outcome(task) for task in pipeline.workers}
    assert {task: status for task, (status, _, _) in ended.items()} == dict.fromkeys(ended, 0), ended
    _, lines, log = ended["camera-0"]
    told = lines[-1]["result"]["requests"]["alarm"]
    assert 0 < told["p50_ms"] <= told["p95_ms"] <= told["p99_ms"]
    assert told["answers"] + told["lost"] <= told["sent"]
    assert told["answers"] > 0.5 * told["sent"] > 5
    assert "record" not in lines[-1]["result"]["requests"]  # no answer comes back
    assert all("progress" in line for line in lines[:-1])
    served = {task: lines[-1]["result"]["served"] for task, (_, lines, _) in ended.items()}
    assert served["detect-0"] >= told["answers"]
    assert served["decode-0"] >= served["detect-0"] + served["archive-0"]
    assert "alarm (camera-0 -> decode-0 -> detect-0 -> camera-0, 8/s)" in log


@pytest.mark.timeout(90)
def test_two_users_end_when_both_have_ended(made: list[Pipeline]) -> None:
    pipeline = started(made, "communication", "--seconds", "2")
    ended = {task: pipeline.outcome(task) for task in pipeline.workers}
    assert {status for status, _, _ in ended.values()} == {0}, ended
    relayed = ended["relay-0"][1][-1]["result"]["served"]
    arrived = sum(ended[phone][1][-1]["result"]["served"] for phone in ("phone-a-0", "phone-b-0"))
    assert 0 < arrived <= relayed


@pytest.mark.timeout(90)
def test_a_task_that_starts_again_is_found_again(made: list[Pipeline]) -> None:
    pipeline = started(made, "compute")
    wait_for_line(pipeline.workers["camera-0"], '"answers": 1')
    detect = pipeline.workers["detect-0"]
    detect.send_signal(signal.SIGKILL)
    detect.communicate(timeout=LIMIT)
    pipeline.start(["detect-0"])
    before = _answers(pipeline)
    while _answers(pipeline) <= before + 5:
        pass
    camera = pipeline.workers["camera-0"]
    camera.send_signal(signal.SIGTERM)
    camera.communicate(timeout=LIMIT)
    assert camera.returncode == 143


def _answers(pipeline: Pipeline) -> int:
    """As the next line of progress says."""
    out = pipeline.workers["camera-0"].stdout
    assert out is not None
    return int(json.loads(out.readline())["progress"]["requests"]["loop"]["answers"])


def test_outside_of_an_application_it_says_what_is_missing() -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "CES_JOB": "j", "CES_TASK": "w-0", "CES_ADDRESS": "127.0.0.1"}
    peer = {"rank": 0, "task": "w-0", "address": "127.0.0.1", "port": 1, "node": "n"}
    told = alone | {"CES_PORT": "1", "CES_PEERS": json.dumps([peer]), "CES_FLOWS": "[]"}
    done = subprocess.run(
        [sys.executable, "-m", "ces_workloads.pipeline"],
        env=os.environ | told,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "CES_REQUESTS is not set: no request of the application passes w-0" in done.stderr
