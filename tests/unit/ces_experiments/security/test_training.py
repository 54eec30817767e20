"""The jobs that run through an attack, and what is said of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ces_common.messages.api import JobView, TaskView
from ces_common.states import JobState
from ces_experiments.security import training
from ces_experiments.security.question import KINDS_OF_TRAINING
from ces_workloads.kinds import KINDS


def view(node: str = "n1", progress: tuple[dict[str, Any] | None, ...] = (), **changes: Any) -> JobView:
    tasks = [TaskView(name=f"w-{i}", rank=i, cpu=1, memory=1, node=node, progress=p) for i, p in enumerate(progress)]
    fields: dict[str, Any] = {
        "id": "j", "name": "x", "state": JobState.SUCCEEDED, "priority": 0, "tasks": len(tasks), "attempt": 1,
        "restarts": 0, "submitted_at": datetime.now(UTC), "placement": tasks,
    }  # fmt: skip
    return JobView(**fields | changes)


def test_every_kind_of_training_there_is_has_a_job() -> None:
    assert set(KINDS_OF_TRAINING) == set(KINDS) == set(training.FLOWS)
    for kind in KINDS_OF_TRAINING:
        job = training.job(kind, 4, 32, 10, "attacked", 1)
        assert (job.name, len(job.expand_tasks())) == (f"attacked-{kind}", 4)


def test_the_rogue_is_one_host_more() -> None:
    nodes = training.topology(16).workers
    assert [node.name for node in nodes] == [*(f"n{number}" for number in range(1, training.HOSTS + 1)), training.ROGUE]
    assert {node.cpu for node in nodes} == {3 * training.CPU}, "so that sixteen tasks need all hosts"


def test_a_job_is_as_far_as_its_slowest_worker() -> None:
    assert training.round_of(view(progress=({"round": 7}, {"round": 5}))) == 5
    assert training.round_of(view(progress=({"round": 7}, None))) == 0
    assert training.round_of(view(progress=({"rounds": 9, "seconds": 2.0}, {"rounds": 9, "seconds": 3.0}))) == 9
    assert training.seconds_of(view(progress=({"seconds": 2.0}, {"seconds": 3.0}, None))) == 3.0


def test_rounds_last_somewhat_longer_than_the_attack() -> None:
    assert training.rounds_for(600, 60, 30.0) == pytest.approx(600 / 0.5 * training.LONGER, abs=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"state": JobState.FAILED, "reason": "why"}, ["job x failed: why"]),
        ({"attempt": 2}, ["job x took 2 attempts and 0 restarts"]),
        ({"restarts": 1}, ["job x took 1 attempts and 1 restarts"]),
        ({"node": training.ROGUE}, ["job x ran on the rogue's node"]),
    ],
)
def test_what_is_not_as_if_nothing_had_been_is_told(changes: dict[str, Any], said: list[str]) -> None:
    assert training.complaints([view(progress=(None,), **changes)]) == said


def test_rounds_before_and_during_are_compared_where_both_are_known() -> None:
    found = training.slowdown({"ring": 0.5, "gossip": 0.1}, {"ring": 0.6})
    assert found == {"ring": {"before_ms": 500.0, "during_ms": 600.0, "ratio": pytest.approx(1.2)}}
