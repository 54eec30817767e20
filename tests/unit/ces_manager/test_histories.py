"""Random histories: users, schedulers, agents and time act in any order, and the books stay right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from history_actors import ASKED, NODES, Actors
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant
from long_histories import play, play_moves
from sqlalchemy import text
from world_audit import audit, findings

from ces_common.messages.records import FlowRecord
from ces_common.shares import reservable
from ces_common.state_view import StateView
from ces_common.states import JOB_OVER, JOB_PLACED, JobState
from ces_manager.plans.residual import residual_of

HOPS = {(src, dst) for src in NODES for dst in NODES if src != dst}
_ALLOCATIONS = text("SELECT id, job, task, state, cpu, memory FROM allocations")


def _on_links(flows: Iterable[FlowRecord]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for flow in flows:
        found.update(dict.fromkeys(pairwise(flow.path), flow.rate))
    return found


class Histories(Actors):
    def __init__(self) -> None:
        super().__init__()
        self.were_suspended: set[str] = set()

    @invariant()
    def books_are_right(self) -> None:
        audit(self.world)

    @invariant()
    def what_is_left_is_what_nobody_holds(self) -> None:
        """What has its place holds what it asked for, or what has become of that in place; a suspended job no CPU, and
        nothing of any link."""
        snapshot = self.world.snapshot()
        with self.world.uow.read() as tx:
            residual = residual_of(tx, NODES, HOPS)
            held = {row.id: row for row in tx.session.execute(_ALLOCATIONS)}
        nodes, links = {node.name: node for node in snapshot.nodes}, Counter[tuple[str, str]]()
        cpu, memory = Counter[str](), Counter[str]()
        for job in snapshot.jobs:
            suspended = job.state is JobState.SUSPENDED
            for each in job.allocations:
                if not each.over:
                    asked = job.tasks[each.rank]
                    if job.state in JOB_PLACED:
                        now = asked.cpu if each.cpu is None else each.cpu
                        assert held[each.id].cpu == (0 if suspended else now)
                        assert now >= (each.cpu_desired or 0)
                    cpu[each.node] += held[each.id].cpu
                    memory[each.node] += asked.memory
            for each in job.resizing.allocations if job.resizing else ():
                cpu[each.node] += held[each.id].cpu
                memory[each.node] += held[each.id].memory
            spare = job.moving
            if spare is not None and spare.beside is not None:
                cpu[spare.beside.node] += held[spare.beside.id].cpu
                memory[spare.beside.node] += held[spare.beside.id].memory
            assert not (suspended and any(flow.rate for flow in job.reserved))
            present, coming = _on_links(job.reserved), _on_links(job.resizing.reserved if job.resizing else ())
            links.update((present | coming) + _on_links(spare.reserved if spare else ()) if not job.released else {})
        for name, left in residual.nodes.items():
            assert (left.cpu, left.memory) == (nodes[name].cpu - cpu[name], nodes[name].memory - memory[name])
            assert min(left.cpu, left.memory, left.gpu) >= 0
        assert snapshot.topology is not None
        for link in snapshot.topology.links:
            hop = link.src, link.dst
            assert residual.links[hop].bandwidth == reservable(link.capacity) - links[hop] >= 0

    @invariant()
    def each_task_runs_at_most_once(self) -> None:
        """Over all nodes, also while some of them are cut off; and what runs has its capacity held."""
        with self.world.uow.read() as tx:
            rows = {row.id: row for row in tx.session.execute(_ALLOCATIONS)}
        running = [
            rows[allocation]
            for agent in self.agents.values()
            for (allocation, _), worker in agent.workers.items()
            if worker.state == "running"
        ]
        tasks = Counter((row.job, row.task) for row in running)
        assert all(number == 1 for number in tasks.values()), tasks
        for row in running:
            assert row.state in ("pending", "running", "stopping"), (
                f"a worker runs in an allocation that is {row.state}"
            )

    @invariant()
    def no_worker_has_more_cpu_than_is_held_for_it(self) -> None:
        """But for jobs that were suspended: their CPU is given back before their workers are surely frozen."""
        jobs = self.world.snapshot().jobs
        self.were_suspended |= {job.id for job in jobs if job.state is JobState.SUSPENDED}
        with self.world.uow.read() as tx:
            held = {row.id: row for row in tx.session.execute(_ALLOCATIONS)}
        for agent in self.agents.values():
            for (allocation, _), worker in agent.workers.items():
                if worker.state == "running" and held[allocation].job not in self.were_suspended:
                    assert held[allocation].cpu >= (ASKED if worker.cpu is None else worker.cpu)

    @invariant()
    def follow(self) -> None:
        """A reader that follows by changes knows what a fresh one knows."""
        self.view.merge(self.world.snapshot(self.view.query()))
        fresh = StateView()
        fresh.merge(self.world.snapshot())
        assert self.view.jobs == fresh.jobs
        assert self.view.nodes == fresh.nodes
        assert self.view.topology == fresh.topology

    def after_each(self) -> None:
        self.books_are_right()
        self.what_is_left_is_what_nobody_holds()
        self.each_task_runs_at_most_once()
        self.no_worker_has_more_cpu_than_is_held_for_it()
        self.follow()

    def teardown(self) -> None:
        for job in self.world.snapshot().jobs:
            self.world.cancel(job.id)
        self.world.beat(*NODES)
        self.all_converge()
        audit(self.world)
        left = self.world.snapshot().jobs
        assert findings(self.world) == []
        assert left == [], f"never released: {[(job.state, job.allocations) for job in left if job.state in JOB_OVER]}"
        self.world.close()
        self.folder.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=8,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("seed", range(3))
def test_long_histories(seed: int) -> None:
    machine = Histories()
    play(machine, seed, machine.after_each)


@pytest.mark.parametrize("seed", range(2))
def test_histories_of_moves(seed: int) -> None:
    machine = Histories()
    play_moves(machine, seed, machine.after_each)
