"""The actors of random histories of a manager: users, a scheduler, agents and time, as rules in any order."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import moved_tasks
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from manager_world import World, full_mesh, ring, sqlite_url

from ces_common.disconnect import outlives_s
from ces_common.jobfile import JobFile
from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.state_view import StateView
from ces_common.states import JOB_PLACED, JobState
from ces_manager.errors import Conflict, ManagerError, NotFound
from ces_manager.jobs import commands, network_readiness
from ces_manager.nodes import operations
from ces_manager.nodes.rows import emit_node, node_row

NODES = ["a", "b", "c"]


def malleable(name: str = "malleable", low: int = 1, high: int = 4, **more: object) -> JobFile:
    """Of workers that begin with 500 millicores, and may have 100 to 1000."""
    cpu = {"min": "100m", "max": 1}
    return ring(name, elastic={"group": "w", "workers": {"min": low, "max": high}, "cpu": cpu}, **more)


places = st.lists(st.sampled_from(NODES), min_size=1, max_size=3)
nodes = st.sampled_from(NODES)
pick = st.integers(0, 4)
gpus = st.integers(0, 2)  # of each task
SCOPES = ["gang", "task", "task"]
MOVABLE = (JobState.RUNNING, JobState.PAUSED)
MARKS = ["cordon", "uncordon", "uncordon", "uncordon", "drain"]
HOWS = ["suspend", "suspend", "stop"]
YIELDS = ["stop", "suspend", "suspend"]
PRIORITIES = [10, 50, 90]
ASKED = 500  # millicores of each task
AMOUNTS = [100, 300, ASKED, 700, 1000]
RATES = [10_000_000, 25_000_000, 50_000_000]
DISCONNECT = ["stop", "stop", "5m", "keep"]
rates = st.sampled_from(RATES)


class Agent:
    """A node's agent: runs what it is told, and remembers how often it started each incarnation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = 0
        self.workers: dict[tuple[str, int], WorkerStatus] = {}
        self.starts: dict[tuple[str, int], int] = {}
        self.reports: list[Status] = []  # sent, may still arrive


class Actors(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(sqlite_url(Path(self.folder.name)))
        self.agents = {name: Agent(name) for name in NODES}
        self.silence = dict.fromkeys(NODES, 0)  # seconds since a node was heard
        self.view = StateView()

    @initialize()
    def build(self) -> None:
        self.world.add_nodes(*NODES, cpu=1500, gpu=3)
        self.world.put_topology(full_mesh(NODES, "100Mbit"))
        for tasks, disconnect, gpu in ((2, "stop", 1), (3, "5m", 0), (3, "stop", 1)):
            self.world.submit(ring(tasks=tasks, priority=10, preemption="suspend", disconnect=disconnect, gpu=gpu))
        self.world.submit(malleable(priority=50, gpu=1))

    # users

    @rule(
        tasks=st.integers(1, 3),
        scope=st.sampled_from(SCOPES),
        disconnect=st.sampled_from(DISCONNECT),
        most=st.integers(0, 2),
        priority=st.sampled_from(PRIORITIES),
        yields=st.sampled_from(YIELDS),
        gpu=gpus,
    )
    def submit(self, tasks: int, scope: str, disconnect: str, most: int, priority: int, yields: str, gpu: int) -> None:
        restart = {"scope": scope, "max": most}
        self.world.submit(
            ring(tasks=tasks, restart=restart, disconnect=disconnect, priority=priority, preemption=yields, gpu=gpu)
        )

    @rule(low=st.integers(1, 2), disconnect=st.sampled_from(DISCONNECT), most=st.integers(0, 2), gpu=gpus)
    def submit_malleable(self, low: int, disconnect: str, most: int, gpu: int) -> None:
        self.world.submit(
            malleable(low=low, restart={"max": most}, disconnect=disconnect, preemption="suspend", gpu=gpu)
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
        act = commands.pause_job if pause else commands.resume_job
        try:
            self.world.write(lambda tx: act(tx, job))
        except Conflict:
            assert self.world.job(job).state not in (JobState.RUNNING, JobState.PAUSED)

    @rule(node=nodes, what=st.sampled_from(MARKS))
    def mark(self, node: str, what: str) -> None:
        with suppress(NotFound):  # forgotten
            self.world.write(lambda tx: getattr(operations, what)(tx, node))

    @rule(bandwidth=st.sampled_from(["25Mbit", "100Mbit"]), ends=st.sampled_from([NODES, NODES[:2]]))
    def rewire(self, bandwidth: str, ends: list[str]) -> None:
        self.world.put_topology(full_mesh(ends, bandwidth))
        # what is being moved off a link that shrank holds it until its agents confirm
        self.all_converge()

    def cut(self, one: str, other: str) -> None:
        """The topology without the link between them; all of it, where they are one."""
        mesh = full_mesh(NODES, "100Mbit")
        left = [link for link in mesh.links if {link.src, link.dst} != {one, other}]
        self.world.put_topology(mesh.model_copy(update={"links": left}))
        self.all_converge()

    def forget_or_join(self, node: str) -> None:
        """A node that is forgotten is off; another device may take its name."""
        if node in {each.name for each in self.world.snapshot().nodes}:
            with suppress(Conflict):  # something may run there
                self.world.forget(node)
                self.agents[node] = Agent(node)
            return
        self.silence[node] = 0
        self.world.add_nodes(node, cpu=1500, gpu=3)
        self.world.write(lambda tx: emit_node(tx, node_row(tx, node), "joined"))
        self.world.write(lambda tx: emit_node(tx, node_row(tx, node), "ready"))

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
            may = how == "stop" or (before.preemption == how and before.moving is None)
            assert (reason is None) is (before.priority <= 90 and may)

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

    @rule(which=pick, size=st.integers(1, 5), where=places, bandwidth=rates)
    def resize(self, which: int, size: int, where: list[str], bandwidth: int) -> None:
        for job in self.sized(which):
            before = self.world.job(job)
            stays = [each.node for each in before.allocations[:1]]
            reason = self.world.resize(job, size, stays + where, bandwidth)
            after = self.world.job(job)
            if reason is not None:
                assert after == before
                continue
            assert (after.state, after.attempt, after.size) == (JobState.RESIZING, before.attempt, before.size)
            assert after.resizing is not None
            assert after.resizing.size == size

    @rule(which=pick, cpu=st.sampled_from(AMOUNTS))
    def change_cpu(self, which: int, cpu: int) -> None:
        for job in self.sized(which):
            before = self.world.job(job)
            reason = self.world.change_cpu(job, cpu)
            after = self.world.job(job)
            if reason is not None:
                assert after == before
                continue
            assert (after.state, after.attempt) == (JobState.RUNNING, before.attempt)
            assert {each.cpu_desired for each in after.allocations if each.state == "running"} == {cpu}

    @rule(which=pick, task=pick, node=nodes, bandwidth=rates)
    def move(self, which: int, task: int, node: str, bandwidth: int) -> None:
        for job in self.apart(which):
            before = self.world.job(job)
            name = before.tasks[task % len(before.tasks)].name
            try:
                remark = moved_tasks.ask(self.world, job, name, node, bandwidth)
            except ManagerError:
                remark = "refused"
            after = self.world.job(job)
            assert (after == before) if remark else (after.moving is not None and before.moving is None)
            assert after.allocations == before.allocations

    @rule(which=pick)
    def lay(self, which: int) -> None:
        for job in self.apart(which):
            if self.world.job(job).moving is not None:
                moved_tasks.laid(self.world, job)

    def apart(self, which: int) -> list[str]:
        """One of the running jobs whose tasks begin again one by one, if there is one."""
        found = [job.id for job in self.world.snapshot().jobs if job.state in MOVABLE and job.restart.scope == "task"]
        return [found[which % len(found)]] if found else []

    def sized(self, which: int) -> list[str]:
        """One of the malleable jobs, if there is one."""
        found = [job.id for job in self.world.snapshot().jobs if job.size is not None]
        return [found[which % len(found)]] if found else []

    @rule(which=pick, ready=st.booleans(), late=st.sampled_from([0, 0, 0, 1]))
    def network(self, which: int, ready: bool, late: int) -> None:
        act = network_readiness.network_ready if ready else network_readiness.network_preparing
        for job in self.choose(which, JobState.PLANNED, JobState.PREPARING, JobState.RESIZING):
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
            given = FlowPlan(src=held.src, dst=held.dst, rate=bandwidth, path=path)
            reason = self.world.revise(job, given)
            after = self.world.job(job)
            assert after.allocations == before.allocations
            assert after.state is before.state
            if reason is None:
                (now,) = (each for each in after.reserved if each.number == held.number)
                assert (now.rate, now.path) == (bandwidth, path)
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
        desired = {
            (a.id, a.incarnation): a.cpu_desired
            for job in snapshot.jobs
            if job.state in JOB_PLACED - {JobState.PLANNED, JobState.PREPARING, JobState.RESIZING}
            for a in job.allocations
            if a.node == node and a.state in ("pending", "running")
        }
        agent.generation = snapshot.version
        agent.workers = {key: worker for key, worker in agent.workers.items() if key in desired}
        for key in sorted(desired - agent.workers.keys()):
            agent.starts[key] = agent.starts.get(key, 0) + 1
            assert agent.starts[key] == 1, f"{key} was started twice"
            agent.workers[key] = WorkerStatus(allocation=key[0], incarnation=key[1], state="running")
        for key, cpu in desired.items():
            if agent.workers[key].state == "running":
                agent.workers[key] = agent.workers[key].model_copy(update={"cpu": cpu})

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
            self.cut_off(name)
        heard = sorted(set(NODES) - deaf)
        self.silence.update(dict.fromkeys(heard, 0))
        self.world.beat(*heard)
        self.world.expire()

    def cut_off(self, name: str) -> None:
        """Past its lease an agent has stopped what must not run on."""
        beyond_s = self.silence[name] - self.world.timeouts.lease_s
        if beyond_s < 0:
            return
        jobs = [job for job in self.world.snapshot().jobs if outlives_s(job.disconnect) > beyond_s]
        goes_on = {allocation.id for job in jobs for allocation in job.allocations}
        agent = self.agents[name]
        for key, worker in agent.workers.items():
            if worker.state == "running" and key[0] not in goes_on:
                agent.workers[key] = worker.model_copy(update={"state": "exited", "exit_code": 143, "lapsed": True})
        agent.reports.clear()

    @rule()
    def all_converge(self) -> None:
        """What is desired changes by what is said, so it takes a few rounds."""
        for name in NODES * 2:
            self.obey(name)
            agent = self.agents[name]
            workers = list(agent.workers.values())
            self.world.report(Status(node=name, generation=agent.generation, workers=workers))
