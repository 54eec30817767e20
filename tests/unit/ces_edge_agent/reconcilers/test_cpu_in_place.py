"""The amount of CPU of a running worker changes in place, and what it has is told."""

import asyncio
from pathlib import Path

import pytest
from agent_parts import worker
from fake_runtime import FakeRuntime
from reconciled_node import WorkerNode

from ces_common.messages.desired import DesiredWorker


@pytest.fixture
def node(tmp_path: Path) -> WorkerNode:
    return WorkerNode(tmp_path)


def elastic(cpu: int, allocation: str = "a", **fields: object) -> DesiredWorker:
    return worker(allocation, cpu=cpu, elastic_cpu=True, **fields)


def told(node: WorkerNode) -> dict[str, int | None]:
    return {each.allocation: each.cpu for each in node.reconciler.status.workers}


async def test_an_amount_changes_without_a_restart_and_is_told(node: WorkerNode) -> None:
    node.want(elastic(500), generation=1)
    await node.look(3)
    assert told(node) == {"a": 500}
    for generation, cpu in ((2, 900), (3, 200)):
        node.want(elastic(cpu), generation=generation)
        await node.look(2)
        assert node.runtime.host.cpus == {"a.1": cpu}
        assert (told(node), node.generation) == ({"a": cpu}, generation)
    assert node.runtime.calls == ["start a.1"]


async def test_what_is_not_set_yet_is_not_told(node: WorkerNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.want(elastic(500), generation=1)
    await node.look(3)
    go = asyncio.Event()
    real = FakeRuntime.limit_cpu

    async def slow(self: FakeRuntime, key: str, cpu: int, *, usual_weight: bool = False) -> None:
        await go.wait()
        await real(self, key, cpu, usual_weight=usual_weight)

    monkeypatch.setattr(FakeRuntime, "limit_cpu", slow)
    node.want(elastic(200), generation=2)
    await node.look()
    assert told(node) == {"a": 500}
    await node.look()
    assert told(node) == {"a": None}, "it may be either"
    assert node.generation == 2
    go.set()
    await node.look(2)
    assert told(node) == {"a": 200}


async def test_a_runtime_that_is_away_is_asked_again(node: WorkerNode) -> None:
    node.want(elastic(500), generation=1)
    await node.look(3)
    node.want(elastic(200), generation=2)
    observed = node.runtime.workers
    node.runtime.available = False
    with pytest.MonkeyPatch.context() as patch:
        shown = dict(node.runtime.host.workers)

        async def still() -> dict[str, object]:
            return dict(shown)

        patch.setattr(node.runtime, "workers", still)
        await node.look(2)
    assert told(node) == {"a": None}
    assert node.runtime.workers == observed
    node.runtime.available = True
    await node.look(2)
    assert told(node) == {"a": 200}


async def test_an_agent_that_starts_again_sets_it_again(node: WorkerNode) -> None:
    node.want(elastic(500), generation=1)
    await node.look(3)
    node.runtime.host.cpus.clear()
    node.reconciler = node.agent()
    await node.look()
    assert told(node) == {"a": None}
    await node.look()
    assert node.runtime.host.cpus == {"a.1": 500}
    assert told(node) == {"a": 500}
    assert node.runtime.calls == ["start a.1"]


async def test_one_that_went_on_while_it_was_prepared_has_what_it_is_to_have_now(node: WorkerNode) -> None:
    node.runtime.prepared.clear()
    node.want(elastic(500), generation=1)
    await node.look()
    node.want(elastic(300), generation=2)
    node.runtime.prepared.set()
    await node.look(3)
    assert node.runtime.calls == ["start a.1"]
    assert told(node) == {"a": 300}


async def test_a_frozen_worker_goes_on_with_no_more_than_it_is_to_have(node: WorkerNode) -> None:
    node.want(elastic(500), generation=1)
    await node.look(3)
    node.want(elastic(900, paused=True), generation=2)
    await node.look(3)
    assert node.states() == {"a.1": "paused"}
    node.want(elastic(200), generation=3)
    await node.look()
    assert (node.states(), node.runtime.host.cpus) == ({"a.1": "paused"}, {"a.1": 200})
    await node.look(2)
    assert (node.states(), told(node)) == ({"a.1": "running"}, {"a": 200})


async def test_others_are_left_alone(node: WorkerNode) -> None:
    node.want(worker("a", cpu=500), elastic(500, "b", command=["exit", "0"]), generation=1)
    await node.look(3)
    assert node.runtime.host.cpus == {}
    assert told(node) == {"a": None, "b": None}
