"""Schedulers that do not know of each other propose plans for the same room, at the same time, in several processes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World, commit_all, full_mesh, ring
from world_audit import audit

from ces_common.messages.plans import PlanProposed
from ces_common.states import JobState

NODES = ["a", "b"]
JOBS, SHARE = 12, 20_000_000  # bit/s; a link of 100 Mbit/s has room for four of these


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(new_database(request.param, tmp_path))
    made.add_nodes(*NODES, cpu=64_000, memory=2**40)
    made.put_topology(full_mesh(NODES, "100Mbit"))
    yield made
    made.close()


def race(world: World, proposals: list[list[PlanProposed]]) -> list[str | None]:
    url = world.uow.engine.url.render_as_string(hide_password=False)
    with ProcessPoolExecutor(len(proposals), mp_context=get_context("spawn")) as processes:
        waiting = [processes.submit(commit_all, url, each, world.now) for each in proposals]
        return [answer for done in waiting for answer in done.result()]


def test_many_managers_never_overbook_a_link(world: World) -> None:
    jobs = [world.submit(ring(f"job-{i}", tasks=2)) for i in range(JOBS)]
    proposals = [world.propose(job, NODES, SHARE) for job in jobs]
    answers = race(world, [proposals[: JOBS // 2], proposals[JOBS // 2 :]])
    assert answers.count(None) == 4
    assert all(answer is None or "Mbit/s left" in answer for answer in answers)
    states = [world.job(job).state for job in jobs]
    assert states.count(JobState.PLANNED) == 4
    assert states.count(JobState.QUEUED) == JOBS - 4
    audit(world)
    kinds = [kind for _, kind in world.events()]
    assert kinds.count("plan.committed") == 4
    assert kinds.count("plan.rejected") == JOBS - 4


def test_two_plans_for_one_job_make_one(world: World) -> None:
    job = world.submit(ring(tasks=2))
    proposals = [[world.propose(job, NODES, SHARE) for _ in range(4)] for _ in range(2)]
    answers = race(world, proposals)
    assert answers.count(None) == 1
    assert len(world.job(job).allocations) == 2
    audit(world)
