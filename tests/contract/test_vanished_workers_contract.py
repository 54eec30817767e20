"""What an agent makes of a worker that was removed behind its back, whatever runs the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
from agent_parts import FakeTime, compute
from runtime_bench import Bench, until

from ces_common.messages.desired import DesiredCompute, DesiredWorker
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.lease import Lease
from ces_edge_agent.lending.lender import NotLent
from ces_edge_agent.ports import NO_SECRETS, Runtime
from ces_edge_agent.reconcilers.graces import Graces
from ces_edge_agent.reconcilers.starts import VANISHED, VANISHED_EXIT, Starts
from ces_edge_agent.reconcilers.stop_reasons import StopReasons
from ces_edge_agent.reconcilers.workers import WorkerReconciler


@dataclass
class Agents:
    """Of one node, one after the other; ``started``: which workers any of them had the runtime start."""

    folder: Path
    time: FakeTime = field(default_factory=FakeTime)
    started: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._document = StoredDocument(self.folder / "desired.json", DesiredCompute, "n")
        self._lease = Lease(self.folder, self.time.clocks())
        self._lease.renew(self.time.steady, 30)
        self._generation = 0

    def want(self, *workers: DesiredWorker) -> None:
        self._generation += 1
        assert self._document.offer(compute(*workers, generation=self._generation).encode())

    def reconciler(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> WorkerReconciler:
        start = runtime.start

        async def noted(worker: DesiredWorker, secrets: Mapping[str, bytes], checkpoint: IO[bytes] | None) -> None:
            self.started.append(worker.key)
            await start(worker, secrets, checkpoint)

        async def none(_: DesiredWorker) -> Mapping[str, bytes]:
            return NO_SECRETS

        async def nothing(worker: DesiredWorker, still: Callable[[], bool]) -> None:
            return None

        monkeypatch.setattr(runtime, "start", noted)
        starts, stops = Starts(self.folder / "started.json"), StopReasons(self.folder / "stopped.json")
        return WorkerReconciler(
            "n",
            runtime,
            self._document,
            self._lease,
            NotLent(),
            starts,
            stops,
            Graces(self.folder / "graces.json"),
            lambda: {"a1"},
            none,
            nothing,
            5.0,
            lambda: None,
        )


async def reported(reconciler: WorkerReconciler) -> dict[str, tuple[str, int | None, str | None]]:
    await reconciler.step()
    return {
        f"{each.allocation}.{each.incarnation}": (each.state, each.exit_code, each.reason)
        for each in reconciler.status.workers
    }


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path / "agent")


@pytest.mark.parametrize("restarted", [False, True], ids=["same agent", "next agent"])
async def test_a_worker_that_was_removed_has_ended_and_is_not_started_again(
    runtime: Runtime, bench: Bench, agents: Agents, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    agent = agents.reconciler(runtime, monkeypatch)
    agents.want(bench.worker(*bench.sleeps))

    async def runs() -> bool:
        return await reported(agent) == {"a1.0": ("running", None, None)}

    await until(runs)
    await bench.vanish(runtime, "a1.0")
    assert await runtime.workers() == {}
    if restarted:
        again = bench.make()
        await again.open()
        agent = agents.reconciler(again, monkeypatch)
    for _ in range(3):
        assert await reported(agent) == {"a1.0": ("exited", VANISHED_EXIT, VANISHED)}
    assert agents.started == ["a1.0"]
    agents.want(bench.worker(*bench.sleeps, incarnation=1))

    async def runs_again() -> bool:
        return await reported(agent) == {"a1.1": ("running", None, None)}

    await until(runs_again)
    assert agents.started == ["a1.0", "a1.1"]
    if restarted:
        await again.close()


async def test_a_worker_whose_end_was_seen_before_it_was_removed_ended_so(
    runtime: Runtime, bench: Bench, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As containers that have ended are pruned."""
    agent = agents.reconciler(runtime, monkeypatch)
    agents.want(bench.worker(*bench.exits(0)))

    async def has_ended() -> bool:
        return await reported(agent) == {"a1.0": ("exited", 0, None)}

    await until(has_ended)
    await runtime.remove("a1.0")
    assert await runtime.workers() == {}
    agent = agents.reconciler(runtime, monkeypatch)
    for _ in range(3):
        assert await reported(agent) == {"a1.0": ("exited", 0, None)}
    assert agents.started == ["a1.0"]
