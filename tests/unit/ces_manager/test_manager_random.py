"""Random histories: users, schedulers, agents and time act in any order, and the books stay right."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from manager_world import World, audit, findings, full_mesh, ring, sqlite_url
from sqlalchemy import text

from ces_common.messages.events import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.shares import reservable
from ces_common.states import JOB_OVER, JOB_PLACED, JobState
from ces_common.view import StateView
from ces_manager import cluster, jobs, plans
from ces_manager.errors import Conflict
from ces_manager.room import room_for

NODES = ["a", "b", "c"]
HOPS = {(src, dst) for src in NODES for dst in NODES if src != dst}
_ALLOCATIONS = text("SELECT id, job, task, state, cpu FROM allocations")
places = st.lists(st.sampled_from(NODES), min_size=1, max_size=3)
nodes = st.sampled_from(NODES)
pick = st.integers(0, 4)
SCOPES = ["gang", "task"]
MARKS = ["cordon", "uncordon", "uncordon", "uncordon", "drain"]
HOWS = ["suspend", "suspend", "stop"]
YIELDS = ["stop", "suspend", "suspend"]
PRIORITIES = [10, 50, 90]
RATES = [10_000_000, 25_000_000, 50_000_000]
KEEP = ["stop", "stop", "stop", "keep"]
rates = st.sampled_from(RATES)


class Agent:
    """A node's agent: runs what it is told, and remembers how often it started each incarnation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = 0
        self.workers: dict[tuple[str, int], WorkerStatus] = {}
        self.starts: dict[tuple[str, int], int] = {}
        self.reports: list[Status] = []  # sent, may still arrive


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(sqlite_url(Path(self.folder.name)))
        self.agents = {name: Agent(name) for name in NODES}
        self.silence = dict.fromkeys(NODES, 0)  # seconds since a node was heard
        self.view = StateView()

    @initialize()
    def build(self) -> None:
        self.world.add_nodes(*NODES, cpu=1500)
        self.world.put_topology(full_mesh(NODES, "100Mbit"))
        for tasks in (2, 3, 3):
            self.world.submit(ring(tasks=tasks, priority=10, preemption="suspend"))

    # users

    @rule(
        tasks=st.integers(1, 3),
        scope=st.sampled_from(SCOPES),
        disconnect=st.sampled_from(KEEP),
        most=st.integers(0, 2),
        priority=st.sampled_from(PRIORITIES),
        yields=st.sampled_from(YIELDS),
    )
    def submit(self, tasks: int, scope: str, disconnect: str, most: int, priority: int, yields: str) -> None:
        restart = {"scope": scope, "max": most}
        self.world.submit(
            ring(tasks=tasks, restart=restart, disconnect=disconnect, priority=priority, preemption=yields)
        )

    @rule(which=pick)
    def cancel(self, which: int) -> None:
        for job in self.choose(which, *JobState):
            self.world.cancel(job)

    @rule(which=pick, pause=st.booleans())
    def pause_or_resume(self, which: int, pause: bool) -> None:
        for job in self.choose(which, *JobState):
            self.switch(job, pause)

    def switch(self, job: str, pause: bool) -> None:
        act = jobs.pause_job if pause else jobs.resume_job
        try:
            self.world.write(lambda tx: act(tx, job))
        except Conflict:
            assert self.world.job(job).state not in (JobState.RUNNING, JobState.PAUSED)

    @rule(node=nodes, what=st.sampled_from(MARKS))
    def mark(self, node: str, what: str) -> None:
        if what == "drain":
            self.world.write(lambda tx: cluster.drain(tx, node))
        else:
            self.world.write(lambda tx: getattr(cluster, what)(tx, node))

    @rule(bandwidth=st.sampled_from(["25Mbit", "100Mbit"]), ends=st.sampled_from([NODES, NODES[:2]]))
    def rewire(self, bandwidth: str, ends: list[str]) -> None:
        self.world.put_topology(full_mesh(ends, bandwidth))
        # what is being moved off a link that shrank holds it until its agents confirm
        self.all_converge()

    # scheduler and network-ctl

    @rule(which=pick, where=places, bandwidth=rates)
    def plan(self, which: int, where: list[str], bandwidth: int) -> None:
        for job in self.choose(which, *JobState):
            before = self.world.job(job)
            reason = self.world.commit(self.world.propose(job, where, bandwidth))
            after = self.world.job(job)
            expected = JobState.RUNNING if before.state is JobState.SUSPENDED else JobState.PLANNED
            assert (after == before) if reason else (after.state is expected)

    @rule(which=pick, whom=st.lists(pick, min_size=1, max_size=2, unique=True), how=st.sampled_from(HOWS))
    def preempt(self, which: int, whom: list[int], how: str) -> None:
        for job in self.choose(which, JobState.QUEUED, JobState.SUSPENDED):
            victims = sorted({victim for each in whom for victim in self.choose(each, *JobState)})
            before = self.world.snapshot()
            reason = self.world.preempt(job, *victims, how=how)
            if reason is not None:
                assert self.world.snapshot().jobs == before.jobs
                continue
            states = {self.world.job(victim).state for victim in victims}
            left = {JobState.SUSPENDED} if how == "suspend" else {JobState.RESCHEDULING, JobState.QUEUED}
            assert states <= left

    @rule(which=pick, how=st.sampled_from(HOWS))
    def make_room(self, which: int, how: str) -> None:
        """For a job that is more urgent than any."""
        for victim in self.choose(which, JobState.RUNNING):
            before = self.world.job(victim)
            reason = self.world.preempt(self.world.submit(ring(tasks=1, priority=100)), victim, how=how)
            assert (reason is None) is (before.priority <= 90 and how in ("stop", before.preemption))

    @rule(which=pick, bandwidth=rates)
    def go_on(self, which: int, bandwidth: int) -> None:
        for job in self.choose(which, JobState.SUSPENDED):
            before = self.world.job(job)
            reason = self.world.commit(self.world.go_on(job, bandwidth))
            after = self.world.job(job)
            if reason is not None:
                assert after == before
                continue
            assert after.state is JobState.RUNNING
            assert after.allocations == before.allocations
            assert [flow.number for flow in after.reserved] == [flow.number for flow in before.reserved]

    @rule(which=pick, ready=st.booleans(), late=st.sampled_from([0, 0, 0, 1]))
    def network(self, which: int, ready: bool, late: int) -> None:
        act = plans.network_ready if ready else plans.network_preparing
        for job in self.choose(which, JobState.PLANNED, JobState.PREPARING):
            attempt = self.world.job(job).attempt - late
            self.world.write(lambda tx, job=job, attempt=attempt: act(tx, job, attempt))

    @rule(which=pick, where=places, bandwidth=rates)
    def start(self, which: int, where: list[str], bandwidth: int) -> None:
        """All goes well for once, as far as its agents: most of what is interesting happens to running jobs."""
        for job in self.choose(which, JobState.QUEUED):
            if self.world.commit(self.world.propose(job, where, bandwidth)) is None:
                self.world.network(job)
                self.all_converge()

    @rule(which=pick, flow=pick, bandwidth=rates, via=nodes)
    def revise(self, which: int, flow: int, bandwidth: int, via: str) -> None:
        for job in self.choose(which, *JobState):
            before = self.world.job(job)
            if not before.reserved:
                continue
            held = before.reserved[flow % len(before.reserved)]
            path = list(dict.fromkeys([held.path[0], via, held.path[-1]]))
            given = FlowPlan(src=held.src, dst=held.dst, bandwidth=bandwidth, path=path)
            reason = self.world.revise(job, given)
            after = self.world.job(job)
            assert after.allocations == before.allocations
            assert after.state is before.state
            if reason is None:
                (now,) = (each for each in after.reserved if each.number == held.number)
                assert (now.bandwidth, now.path) == (bandwidth, path)
            else:
                assert after == before

    def choose(self, which: int, *states: JobState) -> list[str]:
        """One of the live jobs in these states, if there is one."""
        found = [job.id for job in self.world.snapshot().jobs if job.state in states]
        return [found[which % len(found)]] if found else []

    # agents

    @rule(node=nodes)
    def obey(self, node: str) -> None:
        """The agent gets its compute document and converges to it."""
        agent = self.agents[node]
        snapshot = self.world.snapshot()
        wanted = {
            (a.id, a.incarnation)
            for job in snapshot.jobs
            if job.state in JOB_PLACED - {JobState.PLANNED, JobState.PREPARING}
            for a in job.allocations
            if a.node == node and a.state in ("pending", "running")
        }
        agent.generation = snapshot.version
        agent.workers = {key: worker for key, worker in agent.workers.items() if key in wanted}
        for key in sorted(wanted - agent.workers.keys()):
            agent.starts[key] = agent.starts.get(key, 0) + 1
            assert agent.starts[key] == 1, f"{key} was started twice"
            agent.workers[key] = WorkerStatus(allocation=key[0], incarnation=key[1], state="running")

    @rule(node=nodes, code=st.sampled_from([0, 0, 1]))
    def exit_one(self, node: str, code: int) -> None:
        agent = self.agents[node]
        for key, worker in sorted(agent.workers.items()):
            if worker.state == "running":
                agent.workers[key] = worker.model_copy(update={"state": "exited", "exit_code": code})
                return

    @rule(node=nodes)
    def speak(self, node: str) -> None:
        """A report is sent, and arrives now or later."""
        agent = self.agents[node]
        agent.reports.append(Status(node=node, generation=agent.generation, workers=list(agent.workers.values())))

    @rule(node=nodes, newest=st.booleans(), keep=st.booleans())
    def arrive(self, node: str, newest: bool, keep: bool) -> None:
        """Reports may be late, out of order and repeated."""
        agent = self.agents[node]
        if agent.reports:
            index = -1 if newest else 0
            self.world.report(agent.reports[index] if keep else agent.reports.pop(index))

    # time

    @rule(seconds=st.sampled_from([1, 5, 15]), deaf=st.sets(nodes, max_size=1))
    def pass_time(self, seconds: int, deaf: set[str]) -> None:
        self.wait(seconds, deaf)

    @rule(seconds=st.sampled_from([45, 200]), deaf=st.sets(nodes))
    def pass_long_time(self, seconds: int, deaf: set[str]) -> None:
        self.wait(seconds, deaf)

    def wait(self, seconds: int, deaf: set[str]) -> None:
        self.world.wait(seconds)
        for name in sorted(deaf):
            self.silence[name] += seconds
            if self.silence[name] >= self.world.policy.lease_s:
                self.cut_off(name)
        heard = sorted(set(NODES) - deaf)
        self.silence.update(dict.fromkeys(heard, 0))
        self.world.beat(*heard)
        self.world.tick()

    def cut_off(self, name: str) -> None:
        """Past its lease an agent has stopped what must not run on."""
        keep = {a.id for job in self.world.snapshot().jobs if job.disconnect == "keep" for a in job.allocations}
        agent = self.agents[name]
        for key, worker in agent.workers.items():
            if worker.state == "running" and key[0] not in keep:
                agent.workers[key] = worker.model_copy(update={"state": "exited", "exit_code": 143, "lapsed": True})
        agent.reports.clear()

    @rule()
    def all_converge(self) -> None:
        """What is wanted changes by what is said, so it takes a few rounds."""
        for name in NODES * 2:
            self.obey(name)
            agent = self.agents[name]
            workers = list(agent.workers.values())
            self.world.report(Status(node=name, generation=agent.generation, workers=workers))

    @invariant()
    def books_are_right(self) -> None:
        audit(self.world)

    @invariant()
    def what_is_left_is_what_nobody_holds(self) -> None:
        """What has its place holds what it asked for; a suspended job no CPU, and nothing of any link."""
        snapshot = self.world.snapshot()
        with self.world.uow.read() as tx:
            room = room_for(tx, NODES, HOPS)
            held = {row.id: row for row in tx.session.execute(_ALLOCATIONS)}
        nodes, links = {node.name: node for node in snapshot.nodes}, Counter[tuple[str, str]]()
        cpu, memory = Counter[str](), Counter[str]()
        for job in snapshot.jobs:
            suspended = job.state is JobState.SUSPENDED
            for each in job.allocations:
                if not each.over:
                    asked = job.tasks[each.rank]
                    if job.state in JOB_PLACED:
                        assert held[each.id].cpu == (0 if suspended else asked.cpu)
                    cpu[each.node] += held[each.id].cpu
                    memory[each.node] += asked.memory
            for flow in job.reserved:
                assert not (suspended and flow.bandwidth)
                links.update(dict.fromkeys(pairwise(flow.path if not job.released else []), flow.bandwidth))
        for name, left in room.nodes.items():
            assert (left.cpu, left.memory) == (nodes[name].cpu - cpu[name], nodes[name].memory - memory[name])
            assert min(left.cpu, left.memory, left.gpu) >= 0
        assert snapshot.topology is not None
        for link in snapshot.topology.links:
            hop = link.src, link.dst
            assert room.links[hop].bandwidth == reservable(link.capacity) - links[hop] >= 0

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
    def follow(self) -> None:
        """A reader that follows by changes knows what a fresh one knows."""
        self.view.merge(self.world.snapshot(self.view.query()))
        fresh = StateView()
        fresh.merge(self.world.snapshot())
        assert self.view.jobs == fresh.jobs
        assert self.view.nodes == fresh.nodes
        assert self.view.topology == fresh.topology

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
    max_examples=15,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("seed", range(6))
def test_long_histories(seed: int) -> None:
    """Hypothesis finds short ways to break things; these are longer, and mostly full of running jobs."""
    dice = random.Random(seed)
    machine = Histories()
    machine.build()

    def some_nodes(most: int) -> list[str]:
        return dice.sample(NODES, dice.randint(1, most))

    acts: list[tuple[int, Callable[[], None]]] = [
        (
            8,
            lambda: machine.submit(
                dice.randint(1, 3),
                dice.choice(SCOPES),
                dice.choice(KEEP),
                dice.randint(0, 3),
                dice.choice(PRIORITIES),
                dice.choice(YIELDS),
            ),
        ),
        (8, lambda: machine.preempt(dice.randint(0, 4), dice.sample(range(5), dice.randint(1, 2)), dice.choice(HOWS))),
        (9, lambda: machine.make_room(dice.randint(0, 4), dice.choice(HOWS))),
        (9, lambda: machine.go_on(dice.randint(0, 4), dice.choice(RATES))),
        (2, lambda: machine.cancel(dice.randint(0, 4))),
        (3, lambda: machine.pause_or_resume(dice.randint(0, 4), dice.random() < 0.5)),
        (3, lambda: machine.mark(dice.choice(NODES), dice.choice(MARKS))),
        (1, lambda: machine.rewire(dice.choice(["25Mbit", "100Mbit"]), dice.choice([NODES, NODES, NODES[:2]]))),
        (6, lambda: machine.plan(dice.randint(0, 4), some_nodes(3), dice.choice(RATES))),
        (6, lambda: machine.network(dice.randint(0, 4), dice.random() < 0.5, int(dice.random() < 0.1))),
        (8, lambda: machine.start(dice.randint(0, 4), some_nodes(3), dice.choice(RATES))),
        (10, lambda: machine.obey(dice.choice(NODES))),
        (8, lambda: machine.exit_one(dice.choice(NODES), dice.choice([0, 0, 1]))),
        (10, lambda: machine.speak(dice.choice(NODES))),
        (12, lambda: machine.arrive(dice.choice(NODES), dice.random() < 0.5, dice.random() < 0.3)),
        (8, lambda: machine.pass_time(dice.choice([1, 5, 15]), set(some_nodes(1)))),
        (2, lambda: machine.pass_long_time(dice.choice([45, 200]), set(some_nodes(1)))),
        (1, machine.all_converge),
    ]
    weights, calls = zip(*acts, strict=True)
    for call in dice.choices(calls, weights, k=150):
        call()
        machine.books_are_right()
        machine.what_is_left_is_what_nobody_holds()
        machine.each_task_runs_at_most_once()
        machine.follow()
    machine.teardown()
