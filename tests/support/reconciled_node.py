"""An agent's reconcilers over a runtime and a network without a machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from agent_parts import FakeTime, compute
from fake_runtime import FakeRuntime

from ces_common.messages.desired import DesiredCompute, DesiredWorker
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.lease import Lease
from ces_edge_agent.lending.lender import Lender, NotLent
from ces_edge_agent.ports import NO_SECRETS, Refused, RuntimeUnavailable
from ces_edge_agent.reconcilers.graces import Graces
from ces_edge_agent.reconcilers.network import NetworkReconciler
from ces_edge_agent.reconcilers.starts import Starts
from ces_edge_agent.reconcilers.stop_reasons import StopReasons
from ces_edge_agent.reconcilers.workers import WorkerReconciler
from ces_edge_agent.secrets import SecretsAway, StartedBefore


class SlowRuntime(FakeRuntime):
    """Starts and stops wait for ``go``, and what comes before a start for ``prepared``."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.go = asyncio.Event()
        self.go.set()
        self.prepared = asyncio.Event()
        self.prepared.set()
        self.calls: list[str] = []
        self.graces: list[float] = []
        self.failures = 0

    async def prepare(self, worker: DesiredWorker) -> None:
        await self.prepared.wait()
        await super().prepare(worker)

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        self.calls.append(f"start {worker.key}")
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise RuntimeUnavailable("busy")
        await super().start(worker, secrets, checkpoint)

    async def stop(self, key: str, grace_s: float) -> None:
        self.calls.append(f"stop {key}")
        self.graces.append(grace_s)
        await self.go.wait()
        await super().stop(key, grace_s)


class WorkerNode:
    """A reconciler of workers with everything around it."""

    def __init__(self, folder: Path) -> None:
        self.time = FakeTime()
        self.runtime = SlowRuntime(folder)
        self.kept = StoredDocument(folder / "desired.json", DesiredCompute, "n")
        self.lease = Lease(folder, self.time.clocks())
        self.networked = {"a", "b"}
        self.changes = 0
        self.withheld: Refused | SecretsAway | StartedBefore | None = None  # why there are no secrets
        self.archive: Callable[[], IO[bytes]] | None = None  # of the checkpoint that is to be had
        self.asked_for: list[str] = []  # workers for which one was asked
        self.folder = folder
        self.lender: Lender | NotLent = NotLent()
        self.reconciler = self.agent()
        self.renew()

    def agent(self) -> WorkerReconciler:
        """The reconciler of an agent that starts, with what earlier ones left on disk."""
        starts, stops = Starts(self.folder / "started.json"), StopReasons(self.folder / "stopped.json")
        return WorkerReconciler(
            "n",
            self.runtime,
            self.kept,
            self.lease,
            self.lender,
            starts,
            stops,
            Graces(self.folder / "graces.json"),
            lambda: self.networked,
            self._secrets,
            self._restored,
            5.0,
            self._changed,
        )

    async def _secrets(self, worker: DesiredWorker) -> Mapping[str, bytes]:
        if worker.secrets and self.withheld is not None:
            raise self.withheld
        return dict.fromkeys(worker.secrets, b"kept")

    async def _restored(self, worker: DesiredWorker, still: Callable[[], bool]) -> IO[bytes] | None:
        self.asked_for.append(worker.key)
        return self.archive() if self.archive is not None and still() else None

    def _changed(self) -> None:
        self.changes += 1

    def renew(self) -> None:
        self.lease.renew(self.time.steady, 30)

    def want(self, *workers: DesiredWorker, generation: int) -> None:
        assert self.kept.offer(compute(*workers, generation=generation).encode())

    async def look(self, times: int = 1) -> None:
        """Look, and let what was begun go as far as it can."""
        for _ in range(times):
            await self.reconciler.step()
            for _ in range(10):
                await asyncio.sleep(0)

    def states(self) -> dict[str, str]:
        return {f"{each.allocation}.{each.incarnation}": each.state for each in self.reconciler.status.workers}

    @property
    def generation(self) -> int:
        return self.reconciler.status.generation


async def running(reconciler: WorkerReconciler | NetworkReconciler, until: Callable[[], bool]) -> None:
    """Let a reconciler run until a condition holds."""
    task = asyncio.create_task(reconciler.run())
    try:
        async with asyncio.timeout(60):
            while not until():
                assert not task.done(), task.exception()
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
