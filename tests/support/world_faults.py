"""Jobs come, processes and machines fail and return, and in the end everything heals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from founded_cluster import founded_cluster, memory_folder
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize
from manager_world import ring
from run_auditor import judge, unanswered
from unruly_bus import Mode, Way
from whole_world import CONTROLLERS, HOP_S, MANAGERS, SCHEDULERS, WholeWorld
from world_audit import audit

from ces_common import subjects as wire
from ces_manager.jobs import commands, submission
from ces_manager.nodes import operations

TASK = 500  # millicores
NODES = {"a": 2 * TASK, "b": TASK, "c": TASK}
RATES = [0.999, 1.0, 1.001]  # of machines' clocks; a bad crystal is ten times better
PROCESSES = [*CONTROLLERS, *MANAGERS, *SCHEDULERS, *NODES]
BEYOND_S = 55  # longer than lease, margin and the hop in which that is noticed, for any job but those that keep on
FOR_LONG = [35, BEYOND_S]  # seconds: beyond a lease, and beyond all of it
FETCH_S = 51  # what is fetched is there when all of that is nearly over
PATIENCE = 30  # hops
MANY = 4  # jobs; of more the oldest is cancelled
ALL = sum(NODES.values()) // TASK  # tasks for which there is room
OVER = ("succeeded", "failed", "cancelled")
ON_THE_WAY = ("planned", "preparing", "starting", "resizing", "rescheduling")
pick = st.sampled_from([0, 0, 1, 2, 3])
places = st.lists(st.sampled_from(sorted(NODES)), min_size=1, max_size=3, unique=True)
WAYS: dict[str, list[Way]] = {"both": ["out", "in"], "out": ["out"], "in": ["in"]}
gang = st.fixed_dictionaries(
    {
        "tasks": st.sampled_from([1, 1, 2, 3]),
        "malleable": st.sampled_from([False, False, True]),
        "amounts": st.sampled_from([False, True]),
        "disconnect": st.sampled_from(["stop", "stop", "stop", "5s", "keep"]),
        "scope": st.sampled_from(["gang", "task"]),
        "priority": st.sampled_from([10, 10, 50, 90, 90]),
        "preemption": st.sampled_from(["stop", "suspend"]),
        "where": st.tuples(places, places),
        "fetch_s": st.sampled_from([FETCH_S, 0, FETCH_S]),
        "stubborn": st.sampled_from([True, True, False]),
    }
)
Gang = Mapping[str, Any]
SLOW_JOB: Gang = {
    "tasks": 1,
    "malleable": False,
    "amounts": False,
    "disconnect": "stop",
    "scope": "gang",
    "priority": 10,
    "preemption": "stop",
    "where": (["c"], ["c"]),
    "fetch_s": FETCH_S,
    "stubborn": True,
}
LANES = [wire.MANAGER_PLANS, wire.MANAGER_PLANS, wire.MANAGER_NETWORKS, wire.MANAGER_REFUSALS]


class Faults(RuleBasedStateMachine):
    @initialize(
        rates=st.tuples(*[st.sampled_from(RATES)] * len(NODES)),
        first=st.lists(gang, max_size=2),
        shared=st.booleans(),
    )
    def build(self, rates: Sequence[float], first: Sequence[Gang], shared: bool = False) -> None:
        self.sound = True  # as far as it was checked
        self.folder = tempfile.TemporaryDirectory(dir=memory_folder())
        clocks = dict(zip(NODES, rates, strict=True))
        self.world = WholeWorld(Path(self.folder.name), founded_cluster(**NODES), NODES, clocks, shared=shared)
        for name in PROCESSES:
            self.world.start(name)
        self.world.flow(0.5)
        self.bring(*first)

    def bring(self, *jobs: Gang) -> None:
        """``where``: each of the schedulers would like them at other nodes. Programs take long to fetch, or to end. One
        that is malleable may take all that there is, and has ``tasks`` at least. Of one with ``amounts`` CPU changes in
        place."""
        for job in jobs:
            live = [job for job, state, _ in self.jobs() if state not in OVER]
            if len(live) > MANY:
                self.world.write(lambda tx, oldest=live[0]: commands.cancel_job(tx, oldest))
            for scheduler, liked in zip(SCHEDULERS, job["where"], strict=True):
                self.world.solvers[scheduler].liked = liked
            for machine in self.world.machines.values():
                machine.fetch_s, machine.stubborn = job["fetch_s"], job["stubborn"]
            more = {key: job[key] for key in ("disconnect", "priority", "preemption")}
            elastic = job["malleable"] or job["amounts"]
            more["restart"] = {"scope": "gang" if elastic else job["scope"], "max": 2}
            if elastic:
                workers = {"min": job["tasks"], "max": ALL if job["malleable"] else job["tasks"]}
                more["elastic"] = {"group": "w", "workers": workers, "grace": "5s"}
            if job["amounts"]:
                more["elastic"]["cpu"] = {"min": f"{TASK // 2}m", "max": f"{2 * TASK}m"}
            file = ring(tasks=job["tasks"], **more)
            self.world.write(lambda tx, file=file: submission.submit_job(tx, file, None))
        if jobs:
            self.world.flow(1.0)

    def pass_time(self, seconds: int, hop_s: float) -> None:
        """In hops, in which no process runs but what watches workers."""
        self.world.wait(seconds, hop_s)

    def cut_off(self, job: Sequence[Gang], who: str, which: int, way: str, mode: Mode, seconds: int | None) -> None:
        """What processes say or hear is lost or waits, for a while or for longer."""
        self.bring(*job)
        names = self.processes(who, which)
        for name in names:
            for each in WAYS[way]:
                self.world.post.set(name, each, mode)
        if seconds is not None:
            self.world.wait(seconds)
            self.come_back(*names)

    def away(
        self,
        job: Sequence[Gang],
        who: str,
        which: int,
        reboot: bool,
        seconds: int | None,
        last_first: bool,
        prune: bool,
    ) -> None:
        """Processes, or all of their machine, are gone for a while or for longer. Somebody may remove the records of
        workers that have ended meanwhile."""
        self.bring(*job)
        names = self.processes(who, which)
        for name in names:
            self.world.kill(name)
            if reboot and name in NODES:
                self.world.machines[name].reboot()
        if seconds is not None:
            self.world.wait(seconds)
            if prune:
                self.prune()
            self.come_back(*(reversed(names) if last_first else names))

    def prune(self) -> None:
        for machine in self.world.machines.values():
            machine.prune()

    def lose(self, job: Gang, who: str, which: int, how: str, seconds: int | None, odd: bool) -> None:
        """A job has just come to a node, which goes alone or together with the controllers; they return one by one."""
        if how in ("kill", "reboot"):
            self.away([job], who, which, how == "reboot", seconds, last_first=odd, prune=odd)
        else:
            self.cut_off([job], who, which, "both", "cut" if how == "cut" else "held", seconds)

    def stall(self, lane: str, jobs: Sequence[Gang], seconds: int) -> None:
        """The managers are late with what others propose or say, and with nothing else."""
        self.world.post.stalled |= {(name, lane) for name in MANAGERS}
        self.bring(*jobs)
        self.world.wait(seconds)
        self.come_back(*MANAGERS)

    def outbid(self, job: Gang, seconds: int, change: str) -> None:
        """All is given away when an urgent job comes, while the managers are late with plans. Meanwhile the node of
        whoever would make room for it may be cordoned or fall silent."""
        least = {**job, "tasks": 1, "malleable": False, "amounts": False, "priority": 10, "fetch_s": 0}
        self.bring(*[least] * self.free())
        self.world.post.stalled |= {(name, wire.MANAGER_PLANS) for name in MANAGERS}
        self.bring({**least, "priority": 90})
        latest = self.world.books.ask(_LATEST)
        node = latest[0][0] if latest else self.node(0)
        if change == "cordon" and self.joined(node):
            self.world.write(lambda tx: operations.cordon(tx, node))
        elif change == "silence":
            self.world.post.set(node, "out", "cut")
            self.world.wait(15)
        self.world.wait(seconds)
        self.come_back(*MANAGERS)

    def return_(self, who: str, which: int) -> None:
        self.come_back(*self.processes(who, which))

    def come_back(self, *names: str) -> None:
        """One after the other."""
        for name in names:
            if name not in NODES or self.joined(name):
                self.world.heal(name)
                self.world.start(name)
                self.world.flow(0.6)

    # who and what is meant

    def processes(self, who: str, which: int) -> list[str]:
        """Those who fail together."""
        return {
            "agent": [self.node(which)],
            "site": [self.node(which), *CONTROLLERS],
            "controller": [CONTROLLERS[which % 2]],
            "controllers": CONTROLLERS,
            "manager": [MANAGERS[which % 2]],
            "scheduler": [SCHEDULERS[which % 2]],
        }[who]

    def node(self, which: int) -> str:
        """One of those to which something is given, if there is any; first those that have yet to start it."""
        busy = [place[0] for place in self.world.books.ask(_BUSY)] or sorted(NODES)
        return busy[which % len(busy)]

    def job(self, which: int) -> tuple[str, str] | None:
        """One that is not over, first those that run, and its state."""
        jobs = [(job, state) for job, state, _ in self.jobs() if state not in OVER]
        jobs.sort(key=lambda each: each[1] != "running")
        return jobs[which % len(jobs)] if jobs else None

    def jobs(self) -> list[tuple[str, str, str]]:
        """Those that hold something or wait: id, state, and why it waits."""
        return self.world.books.ask("SELECT id, state, coalesce(waiting, '') FROM jobs WHERE live ORDER BY id")

    def free(self) -> int:
        """How many tasks there is room for."""
        ((taken,),) = self.world.books.ask(_TAKEN)
        return ALL - taken

    def joined(self, node: str) -> bool:
        return bool(self.world.books.ask("SELECT 1 FROM nodes WHERE name = ?", node))

    # what must hold

    def check(self) -> None:
        wrong = self.world.errors + judge(self.world.journal, NODES)
        self.sound = not wrong
        assert self.sound, "\n".join(wrong)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if self.sound:
                self.in_the_end()
        finally:
            self.world.close()
            self.folder.cleanup()

    def in_the_end(self) -> None:
        """Everything heals, and whatever was left in the middle comes to its end."""
        for node in NODES:
            if not self.joined(node):
                self.world.wipe(node)
                self.world.join(node)
            machine = self.world.machines[node]
            machine.fetch_s, machine.stubborn = 0.0, False
            machine.link(*NODES.keys() - {node}, up=True)
        for database in self.world.databases.values():
            database.lives = None
        for process in PROCESSES:
            self.world.heal(process)
            self.world.start(process)
        self.wait_until(self.not_settled)
        for job, state, _ in self.jobs():
            if state not in OVER:
                self.world.write(lambda tx, job=job: commands.cancel_job(tx, job))
        self.wait_until(self.not_released)
        audit(self.world)

    def wait_until(self, why_not: Callable[[], str]) -> None:
        """For as long as the slowest of machines may take."""
        for _ in range(PATIENCE):
            if not why_not():
                break
            self.world.wait(HOP_S)
        self.check()
        assert not why_not(), why_not()

    def not_released(self) -> str:
        jobs, alive = self.jobs(), self.alive()
        return f"never released: {jobs}, {alive} run" if jobs or alive else ""

    def not_settled(self) -> str:
        """Every job that is said to run does, nothing else runs, and who waits has been told why."""
        alive = self.alive()
        said = self.world.books.ask(_SAID)
        wanted = {f"{place}.{incarnation}" for place, incarnation, _, _ in said}
        running = {f"{place}.{incarnation}" for place, incarnation, *states in said if states == ["running", "running"]}
        if not running <= alive <= wanted:
            return f"{alive} run, wanted are {said}"
        untold = [job for job, state, why in self.jobs() if state in ON_THE_WAY or (state == "queued" and not why)]
        if untold:
            return f"neither placed nor told why: {untold} of {self.jobs()}"
        lost = unanswered(self.world.journal)
        return f"never answered: {lost}" if lost else ""

    def alive(self) -> set[str]:
        """The keys of all workers that run."""
        machines = self.world.machines.values()
        return {key for machine in machines for key, worker in machine.workers.items() if worker.alive}


_BUSY = """
    SELECT node FROM allocations WHERE state IN ('pending', 'running', 'stopping')
    GROUP BY node ORDER BY max(state = 'pending') DESC, node
"""
_TAKEN = "SELECT count(*) FROM allocations WHERE state IN ('pending', 'running', 'stopping')"
_LATEST = """
    SELECT node FROM allocations JOIN jobs ON jobs.id = job WHERE allocations.state IN ('pending', 'running')
    ORDER BY priority, placed_at DESC, jobs.id
"""
_SAID = """
    SELECT allocations.id, incarnation, jobs.state, allocations.state
    FROM allocations JOIN jobs ON jobs.id = job WHERE allocations.state IN ('pending', 'running')
"""
