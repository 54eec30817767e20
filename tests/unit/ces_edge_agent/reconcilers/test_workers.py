"""The reconciler of a node's workers: what it does, and what it dares to report."""

import asyncio
from pathlib import Path

import pytest
from agent_parts import FakeTime, compute, worker
from reconciled_node import WorkerNode, running

from ces_common.messages.desired import DesiredWorker
from ces_common.messages.reports import WorkerStatus
from ces_edge_agent.reconcilers.workers import LONG_START_S, OBSERVE_S


@pytest.fixture
def node(tmp_path: Path) -> WorkerNode:
    return WorkerNode(tmp_path)


async def test_workers_become_as_desired_and_are_reported(node: WorkerNode) -> None:
    node.want(worker("a"), worker("b", command=["exit", "3"]), generation=4)
    await node.look(2)
    assert node.states() == {"a.1": "running", "b.1": "exited"}
    assert node.generation == 4
    assert node.reconciler.occupied() == {"a"}
    node.want(generation=5)
    await node.look(3)
    assert node.states() == {}
    assert node.generation == 5
    assert node.reconciler.occupied() == set()


async def test_a_report_is_announced_when_it_differs(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    before = node.changes
    await node.look(3)
    assert node.changes == before
    node.runtime.end("a.1", 1)
    await node.look()
    assert node.changes == before + 1


async def test_a_generation_is_not_reached_while_something_undesired_lives(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    node.want(generation=2)
    await node.look(3)
    assert node.runtime.calls == ["start a.1", "stop a.1"]
    assert node.generation == 1
    node.runtime.go.set()
    await node.look(3)
    assert node.generation == 2


async def test_a_generation_is_not_reached_while_a_slow_start_may_yet_bring_the_undesired_to_life(
    node: WorkerNode,
) -> None:
    node.runtime.go.clear()
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.want(generation=2)
    await node.look(3)
    assert node.states() == {}
    assert node.generation == 1, "the start under way cannot be called back"
    node.runtime.go.set()
    await node.look()
    assert node.generation == 1
    await node.look(3)
    assert (node.states(), node.generation) == ({}, 2)
    assert node.runtime.calls == ["start a.1", "stop a.1"]


async def test_nor_while_an_earlier_incarnation_is_being_started(node: WorkerNode) -> None:
    node.runtime.go.clear()
    node.want(worker("a", 1), generation=1)
    await node.look(2)
    node.want(worker("a", 2), generation=2)
    await node.look(3)
    assert node.generation == 1
    node.runtime.go.set()
    await node.look(5)
    assert (node.states(), node.generation) == ({"a.2": "running"}, 2)
    assert node.runtime.calls == ["start a.1", "stop a.1", "start a.2"]


async def test_a_start_that_ends_during_the_look_is_not_missed(
    node: WorkerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look may have begun before the worker was there: then it shows nothing, and nothing is under way any more."""
    node.runtime.go.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    node.want(generation=2)
    workers = node.runtime.workers

    async def slow_look() -> object:
        seen = await workers()
        node.runtime.go.set()
        for _ in range(10):
            await asyncio.sleep(0)
        return seen

    monkeypatch.setattr(node.runtime, "workers", slow_look)
    await node.reconciler.step()
    assert "a.1" in node.runtime.host.workers
    assert node.generation == 1


async def test_without_a_document_nothing_is_reached_nor_stopped(node: WorkerNode) -> None:
    await node.runtime.start(worker("a"))
    await node.look(2)
    assert (node.states(), node.generation) == ({"a.1": "running"}, 0)
    node.time.passes(31)
    await node.look(2)
    assert node.states() == {"a.1": "exited"}


async def test_a_refused_worker_is_reported_with_the_reason_and_not_tried_again(node: WorkerNode) -> None:
    node.want(worker("a", command=["no-such-program"]), generation=1)
    await node.look(4)
    (status,) = node.reconciler.status.workers
    assert (status.state, status.reason) == ("refused", "no-such-program: unknown on this node")
    assert node.generation == 1
    assert node.runtime.calls == ["start a.1"]
    node.want(worker("a", 2), generation=2)
    await node.look(3)
    assert node.states() == {"a.2": "running"}


async def test_what_fails_is_tried_again_at_the_next_look_and_not_before(node: WorkerNode) -> None:
    node.runtime.failures = 2
    node.want(worker("a"), generation=1)
    while await node.reconciler.hint.wait(0):
        continue
    await node.look()
    assert not await node.reconciler.hint.wait(0), "or a runtime that is away would be asked without a pause"
    await node.look(3)
    assert node.runtime.calls == ["start a.1"] * 3
    assert node.states() == {"a.1": "running"}


async def test_a_worker_whose_lease_ended_while_it_was_prepared_does_not_start(node: WorkerNode) -> None:
    """Fetching its image may take longer than the lease, and by then it may run elsewhere."""
    node.runtime.prepared.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    node.time.passes(31)
    node.runtime.prepared.set()
    await node.look(3)
    assert node.runtime.calls == []
    node.renew()
    await node.look(2)
    assert node.runtime.calls == ["start a.1"]


@pytest.mark.parametrize("instead", [[], [worker("a", 2)], [worker("a", paused=True)]])
async def test_nor_one_that_is_no_longer_desired_so(node: WorkerNode, instead: list[DesiredWorker]) -> None:
    node.runtime.prepared.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    node.want(*instead, generation=2)
    node.runtime.prepared.set()
    await node.look(3)
    assert "start a.1" not in node.runtime.calls
    assert node.generation == 2


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The event loop's time, by which starts are timed."""
    time = FakeTime()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.steady)
    return time


async def test_a_start_that_takes_long_is_told_of(node: WorkerNode, clock: FakeTime) -> None:
    node.runtime.go.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    clock.passes(LONG_START_S - 1)
    await node.look()
    assert node.states() == {}
    clock.passes(1)
    await node.look()
    assert node.states() == {"a.1": "starting"}
    node.runtime.go.set()
    await node.look(2)
    assert node.states() == {"a.1": "running"}


async def test_a_worker_that_is_there_and_does_not_run_yet_is_not_told_of_unless_it_is_undesired(
    node: WorkerNode, clock: FakeTime
) -> None:
    """As with the process runtime: the worker shows before its program runs. If it hangs, its deadline must end."""
    node.runtime.go.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    before = node.changes
    node.runtime.host.workers["a.1"] = WorkerStatus(allocation="a", incarnation=1, state="starting")
    for _ in range(3):
        await node.look()
        assert node.states() == {}
        clock.passes(LONG_START_S)
    assert node.changes == before
    node.want(generation=2)
    await node.look()
    assert (node.states(), node.generation) == ({"a.1": "starting"}, 1)
    node.runtime.host.workers.clear()
    node.want(worker("a"), generation=3)
    node.runtime.go.set()
    await node.look(2)
    assert (node.states(), node.generation) == ({"a.1": "running"}, 3)


async def test_pause_and_resume(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.want(worker("a", paused=True), generation=2)
    await node.look(2)
    assert node.states() == {"a.1": "paused"}
    node.want(worker("a"), generation=3)
    await node.look(2)
    assert node.states() == {"a.1": "running"}


async def test_a_runtime_that_is_away_ends_no_reconciler(node: WorkerNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.want(worker("a"), generation=1)
    node.runtime.available = False
    asked = 0
    workers = node.runtime.workers

    async def counted() -> object:
        nonlocal asked
        asked += 1
        if asked == 3:
            node.runtime.available = True
        return await workers()

    monkeypatch.setattr(node.runtime, "workers", counted)
    await running(node.reconciler, lambda: node.states() == {"a.1": "running"})
    assert asked >= 3


async def test_an_exit_is_noticed_unasked(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.end("a.1", 7)
    assert OBSERVE_S < 5
    await running(node.reconciler, lambda: node.states() == {"a.1": "exited"})


async def test_generations_of_a_former_database_are_not_reported_for_the_new_one(node: WorkerNode) -> None:
    """Or the manager would take a high old number for the confirmation of a stop that it asked for just now."""
    node.want(worker("a"), generation=900)
    await node.look(2)
    assert (node.reconciler.status.epoch, node.generation) == ("e", 900)
    node.runtime.go.clear()
    assert node.kept.offer(compute(worker("b"), generation=4, epoch="new").encode())
    await node.look(2)
    assert (node.reconciler.status.epoch, node.generation) == ("new", 0)
    node.runtime.go.set()
    await node.look(3)
    assert (node.reconciler.status.epoch, node.generation) == ("new", 4)
