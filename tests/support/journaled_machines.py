"""Machines that write down what ran on them when, and a runtime on them. Workers survive the agent, and end by their
lease without it, as shims and sandboxes see to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import IO

from agent_parts import FakeNetwork
from confinements import APART
from run_auditor import Journal, Run

from ces_common.disconnect import outlives_s
from ces_common.messages.confinement import Confinement
from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_common.messages.reports import LinkStatus, WorkerStatus, WorkerUsage
from ces_edge_agent.deadline import LAST_GRACE_S, deadline_file, read_deadline
from ces_edge_agent.lease import Clocks
from ces_edge_agent.ports import NO_SECRETS, LogChunk, RuntimeUnavailable, SandboxNamespaces

LOOK_S = 1.0  # how often what watches a worker looks at the deadline
REBOOTED_EXIT = 255


@dataclass
class Worker:
    """``run``: its life in the journal."""

    desired: DesiredWorker
    run: Run
    status: WorkerStatus

    @property
    def alive(self) -> bool:
        return self.status.state != "exited"


class Machine:
    """``now``: true time, which nothing on the machine can read; its own steady clock runs at ``rate``, from a number
    of its own since the last boot. ``fetch_s``: how long it takes to fetch what a worker needs, which goes on without
    the agent. ``stubborn``: programs end by SIGKILL only. ``network``: its data plane, which also goes on."""

    def __init__(self, name: str, folder: Path, journal: Journal, now: Callable[[], float], rate: float = 1.0) -> None:
        self.name, self.folder, self.journal, self._now, self._rate = name, folder, journal, now, rate
        self._boots, self._since = 1, now()
        self.fetch_s, self.stubborn = 0.0, False
        self._fetched: dict[str, float] = {}  # worker -> when what it needs will be there
        self.workers: dict[str, Worker] = {}
        self.sandboxes: dict[str, Endpoint] = {}
        self.network = FakeNetwork()

    @property
    def boot(self) -> str:
        return f"{self.name}-{self._boots}"

    def steady(self) -> float:
        return 1000.0 + (self._now() - self._since) * self._rate

    def clocks(self) -> Clocks:
        return Clocks(steady=self.steady, wall=lambda: 1.8e9 + self._now(), boot=self.boot, machine=self.boot)

    def fetching_s(self, key: str) -> float:
        """How much longer it takes until all is there that a worker needs."""
        return max(0.0, self._fetched.setdefault(key, self._now() + self.fetch_s) - self._now())

    def begin(self, desired: DesiredWorker) -> None:
        place, task = desired.allocation, f"{desired.job}/{desired.task}"
        run = self.journal.began(self._now(), self.name, task, place, desired.key, desired.cpu)
        status = WorkerStatus(
            allocation=place,
            incarnation=desired.incarnation,
            state="paused" if desired.paused else "running",
            pid=1000 + len(self.journal.runs),
        )
        self.workers[desired.key] = Worker(desired, run, status)

    def limit(self, worker: Worker, cpu: int) -> None:
        """It may use so much from now on."""
        if worker.alive:
            worker.run.changes.append((self._now(), cpu))

    def end(self, worker: Worker, code: int, reason: str | None = None, lapsed: bool = False, at: float = inf) -> None:
        if worker.alive:
            worker.run.ended = max(min(at, self._now()), worker.run.began)
            update = {"state": "exited", "exit_code": code, "reason": reason, "pid": None, "lapsed": lapsed}
            worker.status = worker.status.model_copy(update=update)

    def watch(self) -> None:
        """What shims and sandboxes have done up to now. To be called whenever time has passed, before anything else
        runs: an agent that was held up finds what they did."""
        deadline = read_deadline(deadline_file(self.folder))
        for worker in self.workers.values():
            if not worker.alive:
                continue
            outlives = outlives_s(worker.desired.disconnect)
            if outlives == inf:
                continue
            end = self._now()
            if deadline is not None and deadline.boot == self.boot:
                end = self._since + (deadline.at + outlives - 1000.0) / self._rate
            end = max(end, worker.run.began) + (LOOK_S + LAST_GRACE_S) / self._rate
            if end <= self._now():
                self.end(worker, 143, "the lease has run out", lapsed=True, at=end)

    def link(self, *peers: str, up: bool) -> None:
        """The links to these go down, or come up."""
        others = [each for each in self.network.states if each.peer not in peers]
        self.network.states = [*others, *(LinkStatus(peer=peer, state="up" if up else "down") for peer in peers)]
        self.network.links_changed.set()

    def prune(self) -> None:
        """Somebody removes the records of workers that have ended."""
        self.workers = {key: worker for key, worker in self.workers.items() if worker.alive}

    def reboot(self) -> None:
        """What ran has ended, of which records are left; the steady clock starts again."""
        for worker in self.workers.values():
            self.end(worker, REBOOTED_EXIT, "node rebooted")
        self.sandboxes.clear()
        self._boots, self._since = self._boots + 1, self._now()


class NoLogs:
    async def read(self, allocation: str, offset: int, limit: int) -> LogChunk | None:
        return None

    async def tail(self, allocation: str, lines: int) -> int | None:
        return None

    async def discard(self, older_than_s: float, in_use: object) -> None:
        return None


@dataclass
class JournaledRuntime:
    machine: Machine
    logs: NoLogs = field(default_factory=NoLogs)
    confinement: Confinement = APART

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def sandboxes(self) -> SandboxNamespaces:
        return dict.fromkeys(self.machine.sandboxes)

    async def ensure_sandbox(self, endpoint: Endpoint) -> str | None:
        self.machine.sandboxes[endpoint.allocation] = endpoint
        return None

    async def remove_sandbox(self, allocation: str) -> None:
        self.machine.sandboxes.pop(allocation, None)

    async def workers(self) -> Mapping[str, WorkerStatus]:
        return {key: worker.status for key, worker in self.machine.workers.items()}

    async def prepare(self, worker: DesiredWorker) -> None:
        await asyncio.sleep(self.machine.fetching_s(worker.key))

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        if worker.allocation not in self.machine.sandboxes:
            raise RuntimeUnavailable(f"allocation {worker.allocation} has no sandbox yet")
        if worker.key not in self.machine.workers:
            self.machine.begin(worker)

    async def keep_checkpoints(self, jobs: Collection[str]) -> None:
        """There are none."""

    async def pack_checkpoint(self, job: str, into: IO[bytes], limit: int, seen: str | None) -> None:
        """There is none."""

    async def stop(self, key: str, grace_s: float) -> None:
        if self.machine.stubborn:
            await asyncio.sleep(grace_s)
        if key in self.machine.workers:
            self.machine.end(self.machine.workers[key], 137 if self.machine.stubborn else 143)

    async def remove(self, key: str) -> None:
        if key in self.machine.workers and not self.machine.workers[key].alive:
            del self.machine.workers[key]

    async def pause(self, key: str) -> None:
        self._change(key, "running", "paused")

    async def resume(self, key: str) -> None:
        self._change(key, "paused", "running")

    async def limit_cpu(self, key: str, cpu: int, *, usual_weight: bool = False) -> None:
        if key in self.machine.workers:
            self.machine.limit(self.machine.workers[key], cpu)

    async def usage(self) -> list[WorkerUsage]:
        live = [worker.status for worker in self.machine.workers.values() if worker.alive]
        return [WorkerUsage(allocation=status.allocation, cpu=0.0, memory=0) for status in live]

    def _change(self, key: str, before: str, after: str) -> None:
        worker = self.machine.workers.get(key)
        if worker is not None and worker.status.state == before:
            worker.status = worker.status.model_copy(update={"state": after})
