"""What may befall CES as a whole, as rules in any order: users and operators, schedulers with old snapshots, time, lost and
late messages, processes that die and machines that reboot."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from manager_world import World, full_mesh, ring, sqlite_url
from run_auditor import judge
from whole_world import CONTROLLERS, MANAGERS, SCHEDULERS, WholeWorld

from ces_common.messages.records import JobRecord
from ces_common.states import JOB_OVER, AllocationState, JobState
from ces_manager.errors import Conflict
from ces_manager.jobs import commands, submission
from ces_manager.network import topology
from ces_manager.nodes import operations

NODES = {"a": 1000, "b": 1000, "c": 500}  # millicores: a task takes 500
RATES = [0.999, 1.0, 1.001]  # of machines' clocks; a bad crystal is ten times better
PROCESSES = [*MANAGERS, *CONTROLLERS, *SCHEDULERS, *NODES]
DISCONNECT = ["stop", "stop", "20s", "keep"]
FOR_LONG = [35, 50, 80]  # seconds: beyond a lease, beyond lease and margin, and beyond those of jobs that last longer
nodes = st.sampled_from(sorted(NODES))
pick = st.integers(0, 4)
places = st.lists(nodes, min_size=1, max_size=2)
schedulers = st.sampled_from(SCHEDULERS)
processes = st.sampled_from(PROCESSES)
ways = st.sampled_from(["both", "both", "out", "in"])


@cache
def database() -> World:
    """One for all examples, emptied for each: to migrate it takes longer than an example."""
    folder = Path(tempfile.mkdtemp(prefix="ces-histories-", dir=memory_folder()))
    return World(sqlite_url(folder))


def memory_folder() -> str | None:
    """A folder in memory where there is one: each example makes thousands of writes."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class WorldActors(RuleBasedStateMachine):
    @initialize(rates=st.tuples(*[st.sampled_from(RATES)] * len(NODES)))
    def build(self, rates: tuple[float, ...]) -> None:
        self.sound = True  # as far as it was checked
        self.folder = tempfile.TemporaryDirectory(dir=memory_folder())
        database().wipe()
        engine = database().uow.engine
        self.world = WholeWorld(Path(self.folder.name), engine, NODES, dict(zip(NODES, rates, strict=True)))
        for node in NODES:
            self.world.join(node)
        self.world.write(lambda tx: topology.put_topology(tx, full_mesh(list(NODES))))
        for name in PROCESSES:
            self.world.start(name)
        self.world.flow(1.0)

    # users and operators

    @rule(
        tasks=st.integers(1, 2),
        disconnect=st.sampled_from(DISCONNECT),
        scope=st.sampled_from(["gang", "task"]),
        scheduler=schedulers,
        where=places,
    )
    def submit(self, tasks: int, disconnect: str, scope: str, scheduler: str, where: list[str]) -> None:
        """And one of the schedulers finds a place for it, if all goes well."""
        file = ring(tasks=tasks, disconnect=disconnect, restart={"scope": scope, "max": 2})
        self.world.write(lambda tx: submission.submit_job(tx, file, None))
        self.schedule(scheduler, True, -1, where)
        self.world.flow(1.0)

    @rule(which=pick)
    def cancel(self, which: int) -> None:
        job = self.job(which)
        if job is not None:
            self.world.write(lambda tx: commands.cancel_job(tx, job.id))

    @rule(which=pick, pause=st.booleans())
    def pause_or_resume(self, which: int, pause: bool) -> None:
        job, act = self.job(which), commands.pause_job if pause else commands.resume_job
        if job is not None and job.state in (JobState.RUNNING, JobState.PAUSED):
            self.world.write(lambda tx: act(tx, job.id))

    @rule(node=nodes, what=st.sampled_from(["drain", "drain", "cordon", "uncordon"]))
    def mark(self, node: str, what: str) -> None:
        if self.joined(node):
            self.world.write(lambda tx: getattr(operations, what)(tx, node))

    @rule(node=nodes)
    def forget(self, node: str) -> None:
        """Where jobs outlive any silence, the operator first makes sure that the machine is gone."""
        manager = next((name for name in MANAGERS if name in self.world.detectors), None)
        if manager is None or not self.joined(node):
            return
        if any(job.disconnect == "keep" for job in self.jobs_on(node)):
            self.world.kill(node)
            self.world.machines[node].reboot()
        try:
            self.world.forget(manager, node)
        except Conflict:
            return
        self.world.kill(node)

    def job(self, which: int) -> JobRecord | None:
        jobs = [job for job in self.world.snapshot().jobs if job.state not in JOB_OVER]
        return jobs[which % len(jobs)] if jobs else None

    def jobs_on(self, node: str) -> list[JobRecord]:
        return [job for job in self.world.snapshot().jobs if any(each.node == node for each in job.allocations)]

    def joined(self, node: str) -> bool:
        return any(each.name == node for each in self.world.snapshot().nodes)

    # schedulers

    @rule(scheduler=schedulers, look=st.booleans(), which=pick, where=places)
    def schedule(self, scheduler: str, look: bool, which: int, where: list[str]) -> None:
        """By what it knows: from now, or from when it looked last."""
        if look:
            self.world.look(scheduler)
            self.world.flow()
        self.world.propose(scheduler, which, where)
        self.world.flow()

    # time

    @rule(seconds=st.sampled_from([1, 5, 15]))
    def pass_time(self, seconds: int) -> None:
        self.world.wait(seconds)

    @rule(seconds=st.sampled_from(FOR_LONG))
    def pass_long_time(self, seconds: int) -> None:
        self.world.wait(seconds)

    @rule(seconds=st.sampled_from([5, 20, 45]))
    def hold_up(self, seconds: int) -> None:
        """No process runs for a while, but what watches workers."""
        self.world.wait(seconds, hop_s=seconds)

    # messages

    @rule(process=processes, way=ways, mode=st.sampled_from(["cut", "held"]))
    def disturb(self, process: str, way: str, mode: str) -> None:
        for each in ("out", "in") if way == "both" else (way,):
            self.world.post.set(process, each, mode)  # type: ignore[arg-type]

    @rule(process=processes)
    def heal(self, process: str) -> None:
        self.world.heal(process)
        self.world.flow(1.0)

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

    # processes and machines

    @rule(process=processes)
    def kill(self, process: str) -> None:
        self.world.kill(process)
        self.world.settle()

    @rule(manager=st.sampled_from(MANAGERS), commits=st.integers(1, 4))
    def doom(self, manager: str, commits: int) -> None:
        """It dies after so many commits, before it can tell anybody."""
        if manager in self.world.databases:
            self.world.databases[manager].lives = commits

    @rule(process=processes)
    def start(self, process: str) -> None:
        if process not in NODES or self.joined(process):
            self.world.start(process)
            self.world.flow(1.0)

    @rule(node=nodes, reboot=st.booleans(), seconds=st.sampled_from([0, 5, *FOR_LONG]))
    def away(self, node: str, reboot: bool, seconds: int) -> None:
        """The agent, or all of the machine, is gone for a while."""
        self.world.kill(node)
        if reboot:
            self.world.machines[node].reboot()
        self.world.wait(seconds)
        self.start(node)

    @rule(node=nodes, seconds=st.sampled_from([0, 20, 60]), stubborn=st.booleans())
    def slow(self, node: str, seconds: int, stubborn: bool) -> None:
        """From now on workers take so long to begin, and to end."""
        self.world.machines[node].pull_s, self.world.machines[node].stubborn = seconds, stubborn

    @rule(node=nodes, code=st.sampled_from([0, 1]))
    def exit_one(self, node: str, code: int) -> None:
        machine = self.world.machines[node]
        for worker in machine.workers.values():
            if worker.status.state == "running":
                machine.end(worker, code)
                break
        self.world.flow(1.0)

    @rule(node=nodes)
    def join_again(self, node: str) -> None:
        """After it was forgotten, with nothing that it knew before."""
        if not self.joined(node):
            self.world.wipe(node)
            self.world.join(node)
            self.start(node)

    # what must hold

    def check(self) -> None:
        wrong = self.world.errors + judge(self.world.journal, NODES)
        self.sound = not wrong
        assert self.sound, "\n".join(wrong)

    def everything_heals(self) -> None:
        for node in NODES:
            self.world.machines[node].pull_s = 0
            if not self.joined(node):
                self.world.wipe(node)
                self.world.join(node)
        for process in PROCESSES:
            self.world.heal(process)
            self.world.start(process)
        self.world.wait(20)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if not self.sound:
                return
            self.everything_heals()
            self.check()
            self.nothing_runs_that_nobody_wants()
            for job in self.world.snapshot().jobs:
                if job.state not in JOB_OVER:
                    self.world.write(lambda tx, job=job: commands.cancel_job(tx, job.id))
            self.world.wait(15)
            self.check()
            left = self.world.snapshot().jobs
            assert left == [], f"never released: {[(job.state, job.allocations) for job in left]}"
            assert not any(worker.alive for each in self.world.machines.values() for worker in each.workers.values())
        finally:
            self.world.close()
            self.folder.cleanup()

    def nothing_runs_that_nobody_wants(self) -> None:
        wanted = {
            f"{each.id}.{each.incarnation}"
            for job in self.world.snapshot().jobs
            for each in job.allocations
            if each.state in (AllocationState.PENDING, AllocationState.RUNNING)
        }
        alive = {
            key for machine in self.world.machines.values() for key, worker in machine.workers.items() if worker.alive
        }
        assert alive <= wanted, f"nobody wants {sorted(alive - wanted)}"
