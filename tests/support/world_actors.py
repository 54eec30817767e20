"""What may befall CES as a whole, as rules in any order: users and operators, schedulers with old snapshots, time, lost
and late messages, processes that die and machines that reboot."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from manager_world import World, full_mesh, ring, sqlite_url
from run_auditor import judge
from unruly_bus import Mode, Way
from whole_world import CONTROLLERS, HOP_S, MANAGERS, SCHEDULERS, WholeWorld

from ces_common.messages.records import JobRecord
from ces_common.states import JOB_OVER, AllocationState, JobState
from ces_manager.errors import Conflict
from ces_manager.jobs import commands, submission
from ces_manager.network import topology
from ces_manager.nodes import operations

NODES = {"a": 1000, "b": 1000, "c": 500}  # millicores: a task takes 500
RATES = [0.999, 1.0, 1.001]  # of machines' clocks; a bad crystal is ten times better
PROCESSES = [*CONTROLLERS, *MANAGERS, *SCHEDULERS, *NODES]
SITES = [CONTROLLERS, *([name] for name in CONTROLLERS + MANAGERS), SCHEDULERS]
DISCONNECT = ["stop", "stop", "5s", "keep"]
FOR_LONG = [35, 50]  # seconds: beyond a lease, and beyond lease and margin of any job but those that keep on
PATIENCE = 30  # hops
WANTED = {AllocationState.PENDING, AllocationState.RUNNING}
nodes = st.sampled_from(sorted(NODES))
pick = st.integers(0, 4)
places = st.lists(nodes, min_size=1, max_size=2)
schedulers = st.sampled_from(SCHEDULERS)
who = st.sampled_from(["agent", "agent", "site", "site", "controller", "controllers", "manager"])
WAYS: dict[str, list[Way]] = {"both": ["out", "in"], "out": ["out"], "in": ["in"]}
ways = st.sampled_from(["both", "both", "out", "in"])
gone = st.sampled_from([5, *FOR_LONG, None])  # None: until it returns by another rule


@cache
def database() -> World:
    """One for all examples, emptied for each: to migrate it takes longer than an example."""
    folder = tempfile.TemporaryDirectory(prefix="ces-histories-", dir=memory_folder())
    atexit.register(folder.cleanup)
    return World(sqlite_url(Path(folder.name)))


def memory_folder() -> str | None:
    """A folder in memory where there is one: each example makes thousands of writes."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class Faults(RuleBasedStateMachine):
    """Jobs come, processes and machines fail and return."""

    @initialize(rates=st.tuples(*[st.sampled_from(RATES)] * len(NODES)), shared=st.booleans())
    def build(self, rates: tuple[float, ...], shared: bool = False) -> None:
        self.sound = True  # as far as it was checked
        self.folder = tempfile.TemporaryDirectory(dir=memory_folder())
        database().wipe()
        engine = database().uow.engine
        known = dict(zip(NODES, rates, strict=True))
        self.world = WholeWorld(Path(self.folder.name), engine, NODES, known, shared=shared)
        for node in NODES:
            self.world.join(node)
        self.world.write(lambda tx: topology.put_topology(tx, full_mesh(list(NODES))))
        for name in PROCESSES:
            self.world.start(name)
        self.world.flow(1.0)

    @rule(
        tasks=st.integers(1, 2),
        disconnect=st.sampled_from(DISCONNECT),
        scope=st.sampled_from(["gang", "task"]),
        scheduler=schedulers,
        where=places,
        fetch_s=st.sampled_from([0, 40]),
        stubborn=st.booleans(),
    )
    def submit(
        self, tasks: int, disconnect: str, scope: str, scheduler: str, where: list[str], fetch_s: int, stubborn: bool
    ) -> None:
        """And one of the schedulers finds a place for it, if all goes well; its programs take long to fetch, or to
        end."""
        for node in where:
            self.world.machines[node].fetch_s, self.world.machines[node].stubborn = fetch_s, stubborn
        file = ring(tasks=tasks, disconnect=disconnect, restart={"scope": scope, "max": 2})
        self.world.write(lambda tx: submission.submit_job(tx, file, None))
        self.world.look(scheduler)
        self.world.flow()
        self.world.propose(scheduler, -1, where)
        self.world.flow(1.0)

    @rule(seconds=st.sampled_from([1, 5, 15, *FOR_LONG]))
    def pass_time(self, seconds: int) -> None:
        self.world.wait(seconds)

    @rule(who=who, which=pick, way=ways, mode=st.sampled_from(["cut", "held"]), seconds=gone)
    def cut_off(self, who: str, which: int, way: str, mode: Mode, seconds: int | None) -> None:
        """What processes say or hear is lost or waits, for a while or for longer."""
        names = self.processes(who, which)
        for name in names:
            for each in WAYS[way]:
                self.world.post.set(name, each, mode)
        if seconds is not None:
            self.world.wait(seconds)
            self.come_back(*names)

    @rule(who=who, which=pick, reboot=st.booleans(), seconds=gone)
    def away(self, who: str, which: int, reboot: bool, seconds: int | None) -> None:
        """Processes, or all of their machine, are gone for a while or for longer."""
        names = self.processes(who, which)
        for name in names:
            self.world.kill(name)
            if reboot and name in NODES:
                self.world.machines[name].reboot()
        if seconds is not None:
            self.world.wait(seconds)
            self.come_back(*names)

    @rule(who=who, which=pick)
    def return_(self, who: str, which: int) -> None:
        self.come_back(*self.processes(who, which))

    def come_back(self, *names: str) -> None:
        """One after the other."""
        for name in names:
            if name not in NODES or self.joined(name):
                self.world.heal(name)
                self.world.start(name)
                self.world.flow(1.0)

    # who and what is meant

    def processes(self, who: str, which: int) -> list[str]:
        """Those who fail together."""
        return {
            "agent": [self.node(which)],
            "site": [self.node(which), *CONTROLLERS],
            "controller": [CONTROLLERS[which % 2]],
            "controllers": CONTROLLERS,
            "manager": [MANAGERS[which % 2]],
        }[who]

    def node(self, which: int) -> str:
        """One of those to which something is given, if there is any."""
        busy = sorted({each.node for job in self.world.snapshot().jobs for each in job.allocations if not each.over})
        busy = busy or sorted(NODES)
        return busy[which % len(busy)]

    def job(self, which: int) -> JobRecord | None:
        jobs = [job for job in self.world.snapshot().jobs if job.state not in JOB_OVER]
        return jobs[which % len(jobs)] if jobs else None

    def jobs_on(self, node: str) -> list[JobRecord]:
        return [job for job in self.world.snapshot().jobs if any(each.node == node for each in job.allocations)]

    def joined(self, node: str) -> bool:
        return any(each.name == node for each in self.world.snapshot().nodes)

    # what must hold

    def check(self) -> None:
        wrong = self.world.errors + judge(self.world.journal, NODES)
        self.sound = not wrong
        assert self.sound, "\n".join(wrong)

    def everything_heals(self) -> None:
        for node in NODES:
            if not self.joined(node):
                self.world.wipe(node)
                self.world.join(node)
        for process in PROCESSES:
            self.world.heal(process)
            self.world.start(process)
        self.wait_until(self.nothing_runs_that_nobody_wants)
        assert self.nothing_runs_that_nobody_wants(), f"{self.alive()} run, wanted is {self.world.snapshot().jobs}"

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if not self.sound:
                return
            self.everything_heals()
            self.check()
            for job in self.world.snapshot().jobs:
                if job.state not in JOB_OVER:
                    self.world.write(lambda tx, job=job: commands.cancel_job(tx, job.id))
            self.wait_until(self.all_is_released)
            self.check()
            assert self.all_is_released(), f"never released: {[job.allocations for job in self.world.snapshot().jobs]}"
        finally:
            self.world.close()
            self.folder.cleanup()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """For as long as the slowest of machines may take."""
        for _ in range(PATIENCE):
            if condition():
                return
            self.world.wait(HOP_S)

    def all_is_released(self) -> bool:
        return not self.world.snapshot().jobs and not self.alive()

    def alive(self) -> set[str]:
        """The keys of all workers that run."""
        machines = self.world.machines.values()
        return {key for machine in machines for key, worker in machine.workers.items() if worker.alive}

    def nothing_runs_that_nobody_wants(self) -> bool:
        """And every job that is said to run does."""
        jobs = self.world.snapshot().jobs
        wanted = {f"{each.id}.{each.incarnation}" for job in jobs for each in job.allocations if each.state in WANTED}
        running = {
            f"{each.id}.{each.incarnation}"
            for job in jobs
            for each in job.allocations
            if job.state is JobState.RUNNING and each.state is AllocationState.RUNNING
        }
        return running <= self.alive() <= wanted


class Actors(Faults):
    """And users, operators and schedulers do as they like, single messages come late or twice, and a manager dies in
    the middle of what it does."""

    @rule(which=pick, what=st.sampled_from(["cancel", "pause", "resume"]))
    def command(self, which: int, what: str) -> None:
        job = self.job(which)
        if job is None or (what != "cancel" and job.state not in (JobState.RUNNING, JobState.PAUSED)):
            return
        act = {"cancel": commands.cancel_job, "pause": commands.pause_job, "resume": commands.resume_job}[what]
        self.world.write(lambda tx: act(tx, job.id))

    @rule(which=pick, what=st.sampled_from(["drain", "cordon", "uncordon", "uncordon", "forget"]))
    def operate(self, which: int, what: str) -> None:
        """A forgotten node joins again, with nothing that it knew before."""
        node = self.node(which)
        if not self.joined(node):
            self.world.wipe(node)
            self.world.join(node)
            self.come_back(node)
        elif what == "forget":
            self.forget(node)
        else:
            self.world.write(lambda tx: getattr(operations, what)(tx, node))

    def forget(self, node: str) -> None:
        """Where jobs outlive any silence, the operator first makes sure that the machine is gone."""
        manager = next((name for name in MANAGERS if name in self.world.detectors), None)
        if manager is None:
            return
        if any(job.disconnect == "keep" for job in self.jobs_on(node)):
            self.world.kill(node)
            self.world.machines[node].reboot()
        with suppress(Conflict):
            self.world.forget(manager, node)
            self.world.kill(node)

    @rule(scheduler=schedulers, look=st.booleans(), which=pick, where=places)
    def schedule(self, scheduler: str, look: bool, which: int, where: list[str]) -> None:
        """By what it knows: from now, or from when it looked last."""
        if look:
            self.world.look(scheduler)
            self.world.flow()
        self.world.propose(scheduler, which, where)
        self.world.flow()

    @rule(which=pick, code=st.sampled_from([0, 1]))
    def exit_one(self, which: int, code: int) -> None:
        machine = self.world.machines[self.node(which)]
        for worker in machine.workers.values():
            if worker.status.state == "running":
                machine.end(worker, code)
                break
        self.world.flow(1.0)

    @rule(seconds=st.sampled_from([5, 20, 45]))
    def hold_up(self, seconds: int) -> None:
        """No process runs for a while, but what watches workers."""
        self.world.wait(seconds, hop_s=seconds)

    @precondition(lambda self: self.world.post.held)
    @rule(which=st.integers(0, 30), what=st.sampled_from(["deliver", "deliver", "again", "drop"]))
    def letter(self, which: int, what: str) -> None:
        post = self.world.post
        letter = post.held[which % len(post.held)]
        if what == "drop":
            post.drop(letter)
        else:
            post.deliver(letter, again=what == "again")
        self.world.flow()

    @rule(manager=st.sampled_from(MANAGERS), commits=st.integers(1, 4))
    def doom(self, manager: str, commits: int) -> None:
        """It dies after so many commits, before it can tell anybody."""
        if manager in self.world.databases:
            self.world.databases[manager].lives = commits
