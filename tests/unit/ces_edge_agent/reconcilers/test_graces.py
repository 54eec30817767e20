"""Workers with a time of their own to end have it, also where the agent starts again meanwhile."""

from pathlib import Path

import pytest
from agent_parts import worker
from reconciled_node import WorkerNode

from ces_edge_agent.reconcilers.graces import Graces


@pytest.fixture
def node(tmp_path: Path) -> WorkerNode:
    return WorkerNode(tmp_path)


async def test_a_worker_with_a_grace_of_its_own_is_given_that(node: WorkerNode) -> None:
    node.want(worker("a", grace=20.0), worker("b"), generation=1)
    await node.look(2)
    node.want(generation=2)
    await node.look(2)
    assert node.runtime.graces == [20.0, 5.0]


async def test_an_agent_that_starts_again_knows_it_still(node: WorkerNode) -> None:
    """It may find the worker alive and desired no longer."""
    node.want(worker("a", grace=20.0), worker("b"), generation=1)
    await node.look(2)
    node.want(generation=2)
    node.reconciler = node.agent()
    await node.look(2)
    assert node.runtime.graces == [20.0, 5.0]


async def test_so_it_does_where_it_ended_right_after_the_start(node: WorkerNode) -> None:
    node.want(worker("a", grace=20.0), generation=1)
    await node.look()
    node.reconciler = node.agent()
    node.want(generation=2)
    await node.look(2)
    assert node.runtime.graces == [20.0]


async def test_a_worker_whose_start_ends_after_it_is_desired_no_longer_has_it_too(node: WorkerNode) -> None:
    node.runtime.go.clear()
    node.want(worker("a", grace=20.0), generation=1)
    await node.look(2)
    node.want(generation=2)
    await node.look(2)
    node.runtime.go.set()
    await node.look(3)
    assert node.runtime.graces == [20.0]


async def test_notes_are_forgotten_with_their_workers(node: WorkerNode) -> None:
    node.want(worker("a", grace=20.0), generation=1)
    await node.look(2)
    assert Graces(node.folder / "graces.json").by_worker == {"a.1": 20.0}
    node.want(generation=2)
    await node.look(5)
    assert Graces(node.folder / "graces.json").by_worker == {}


@pytest.mark.parametrize("content", [b"", b"[]", b"rubbish", b"\xff", b'{"a.1": "long"}'])
def test_unreadable_notes_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "graces.json"
    path.write_bytes(content)
    assert Graces(path).by_worker == {}


async def test_a_full_disk_keeps_no_worker_from_its_grace(node: WorkerNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ces_edge_agent.reconcilers.graces.write_atomically", full)
    node.want(worker("a", grace=20.0), generation=1)
    await node.look(2)
    node.want(generation=2)
    await node.look(2)
    assert node.runtime.graces == [20.0]
