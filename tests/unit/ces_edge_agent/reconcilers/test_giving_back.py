"""What the reconciler of workers does when the device's owner has it back."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from agent_parts import worker
from reconciled_node import WorkerNode

from ces_common.messages.reports import WorkerStatus
from ces_edge_agent.lending.lender import NotLent
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.reconcilers import workers
from ces_edge_agent.reconcilers.actions import RECLAIMED
from ces_edge_agent.reconcilers.workers import LAST_CPU


class Owner(NotLent):
    """Has the device back when told to; ``ends`` says that no worker may be left."""

    def __init__(self) -> None:
        self.has_it, self.grace_s = False, 10.0
        self.ends = asyncio.Event()

    @property
    def lent(self) -> bool:
        return not self.has_it

    def left_s(self) -> float:
        return self.grace_s if self.has_it else math.inf

    async def over(self) -> None:
        await self.ends.wait()


class LentNode(WorkerNode):
    def __init__(self, folder: Path) -> None:
        self.owner = Owner()
        super().__init__(folder)
        self.lender = self.owner
        self.reconciler = self.agent()

    async def reclaim(self) -> None:
        self.owner.has_it = True
        await self.reconciler.freeze()

    def told(self) -> list[WorkerStatus]:
        return self.reconciler.status.workers


@pytest.fixture
def node(tmp_path: Path) -> LentNode:
    return LentNode(tmp_path)


async def test_all_workers_are_frozen_at_once_and_then_stopped_with_little_cpu(node: LentNode) -> None:
    node.want(worker("a"), worker("b", grace=30.0), generation=1)
    await node.look(2)
    await node.reclaim()
    assert {each.state for each in node.runtime.host.workers.values()} == {"paused"}
    assert node.runtime.host.limits == {"a.1": LAST_CPU, "b.1": LAST_CPU}
    assert "stop a.1" not in node.runtime.calls
    await node.look(2)
    stops = dict(zip(node.runtime.calls[2:], node.runtime.graces, strict=True))
    assert stops == {"stop a.1": 5.0, "stop b.1": 10.0}
    assert [(each.state, each.reclaimed, each.lapsed) for each in node.told()] == [("exited", True, False)] * 2
    assert node.told()[0].reason == f"stopped: {RECLAIMED}"


async def test_one_that_ends_well_when_told_to_has_not_done_its_work(node: LentNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    await node.reclaim()
    await node.look()
    node.runtime.end("a.1", 0)
    await node.look()
    assert [(each.exit_code, each.reclaimed) for each in node.told()] == [(143, True)]
    node.runtime.go.set()


async def test_an_agent_that_starts_again_still_says_why(node: LentNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    await node.reclaim()
    await node.look(2)
    node.owner.has_it = False
    node.reconciler = node.agent()
    await node.look()
    assert [each.reclaimed for each in node.told()] == [True]


async def test_nothing_starts_while_the_owner_has_the_device(node: LentNode) -> None:
    node.owner.has_it = True
    node.want(worker("a"), generation=1)
    await node.look(3)
    assert node.runtime.calls == []
    node.owner.has_it = False
    await node.look()
    assert node.runtime.calls == ["start a.1"]


async def test_a_worker_that_is_still_prepared_never_starts(node: LentNode) -> None:
    node.runtime.prepared.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    await node.reclaim()
    node.runtime.prepared.set()
    await node.look(3)
    assert node.runtime.calls == []


async def test_one_that_comes_alive_during_the_reclaim_ends_too(node: LentNode) -> None:
    node.runtime.go.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    await node.reclaim()
    node.runtime.go.set()
    await node.look(3)
    assert node.runtime.calls == ["start a.1", "stop a.1"]
    assert [each.reclaimed for each in node.told()] == [True]


async def test_a_stop_under_way_is_not_frozen_but_cut_short(node: LentNode) -> None:
    node.want(worker("a", grace=600.0), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    node.want(generation=2)
    await node.look(2)
    await node.reclaim()
    assert node.runtime.host.workers["a.1"].state == "running", "it has had its SIGTERM, and may be writing"
    assert node.runtime.host.limits == {"a.1": LAST_CPU}
    node.owner.ends.set()
    await node.look()
    assert node.runtime.graces[1:] == [0.0]
    node.runtime.go.set()
    await node.look(3)
    assert node.states() == {}


async def test_short_memory_leaves_no_time_for_a_checkpoint(node: LentNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.owner.grace_s = 0.0
    node.owner.ends.set()
    await node.reclaim()
    await node.look(2)
    assert node.runtime.graces[0] == 0.0


async def test_paused_workers_give_their_memory_back(node: LentNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.want(worker("a", paused=True), generation=2)
    await node.look(2)
    assert node.states() == {"a.1": "paused"}
    await node.reclaim()
    await node.look(2)
    assert [each.reclaimed for each in node.told()] == [True]


async def test_a_generation_is_reached_while_the_owner_has_the_device(node: LentNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.want(generation=2)
    await node.reclaim()
    await node.look(3)
    assert node.states() == {}
    assert node.generation == 2


async def test_a_runtime_that_does_not_answer_holds_nobody_up(node: LentNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.available = False
    await node.reclaim()
    node.runtime.available = True
    await node.look(2)
    assert [each.reclaimed for each in node.told()] == [True]


async def test_a_freeze_that_fails_keeps_no_worker_from_its_end(
    node: LentNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_: str) -> None:
        raise OSError("no space left")

    node.want(worker("a"), worker("b"), generation=1)
    await node.look(2)
    monkeypatch.setattr(node.runtime, "pause", full)
    await node.reclaim()
    await node.look(2)
    assert [each.reclaimed for each in node.told()] == [True, True]


async def test_a_slow_freeze_holds_up_no_other_end(node: LentNode, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    async def hangs(key: str) -> None:
        asked.append(key)
        if key == "a.1":
            await asyncio.Event().wait()

    monkeypatch.setattr(workers, "FREEZE_S", 0.01)
    monkeypatch.setattr(node.runtime, "pause", hangs)
    node.want(worker("a"), worker("b"), generation=1)
    await node.look(2)
    await asyncio.wait_for(node.reclaim(), 60)
    assert asked == ["a.1", "b.1"]
    await node.look()
    assert "stop b.1" in node.runtime.calls


async def test_nobody_gets_more_cpu_than_before(node: LentNode) -> None:
    node.want(worker("a", cpu=50), worker("b", cpu=2000), generation=1)
    await node.look(2)
    await node.reclaim()
    assert node.runtime.host.limits == {"a.1": 50, "b.1": LAST_CPU}


async def test_a_kill_that_fails_leaves_no_stop_behind(node: LentNode, monkeypatch: pytest.MonkeyPatch) -> None:
    left = list[str]()

    async def stop(_: str, grace_s: float) -> None:
        if not grace_s:
            raise RuntimeUnavailable("busy")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            left.append("cancelled")
            raise

    node.want(worker("a"), generation=1)
    await node.look(2)
    monkeypatch.setattr(node.runtime, "stop", stop)
    await node.reclaim()
    await node.look()
    node.owner.ends.set()
    await node.look()
    assert left == ["cancelled"]


async def test_memory_that_runs_short_waits_for_no_freeze(node: LentNode, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(_: str) -> None:
        raise AssertionError("frozen")

    monkeypatch.setattr(node.runtime, "pause", never)
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.owner.grace_s = 0.0
    node.owner.ends.set()
    await node.reclaim()
    await node.look(2)
    assert node.runtime.graces == [0.0]


@pytest.mark.parametrize("restarts", [False, True], ids=["goes on", "starts again"])
async def test_what_was_frozen_ends_although_the_device_is_lent_again_at_once(node: LentNode, restarts: bool) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    await node.reclaim()
    node.owner.has_it = False
    if restarts:
        node.reconciler = node.agent()
    await node.look(2)
    assert [(each.state, each.reclaimed) for each in node.told()] == [("exited", True)]


async def test_an_amount_that_changes_takes_no_device_back(node: LentNode) -> None:
    node.want(worker("a", cpu=500, elastic_cpu=True), generation=1)
    await node.look(3)
    await node.reclaim()
    node.want(worker("a", cpu=900, elastic_cpu=True), generation=2)
    await node.look(3)
    assert node.runtime.host.cpus == {"a.1": 500}
    assert node.runtime.host.limits == {"a.1": LAST_CPU}
    assert [each.state for each in node.told()] == ["exited"]
