"""The reconciler of a node's workers removes checkpoints once their job is surely over, and no earlier; a worker begins
from the one that it is to begin from."""

import io
import tarfile
from pathlib import Path

import pytest
from agent_parts import compute, worker
from reconciled_node import WorkerNode

from ces_common.messages.desired import CheckpointSource
from ces_edge_agent.checkpoints.archive import entry

WRITTEN = {"j": "step-7", "k": "step-3"}


@pytest.fixture
def node(tmp_path: Path) -> WorkerNode:
    made = WorkerNode(tmp_path)
    made.runtime.host.checkpoints = dict(WRITTEN)
    return made


async def test_those_of_jobs_that_are_not_kept_are_removed(node: WorkerNode) -> None:
    assert node.kept.offer(compute(generation=1, checkpoints=["k"]).encode())
    await node.look(2)
    assert node.runtime.host.checkpoints == {"k": "step-3"}
    assert node.kept.offer(compute(generation=2, checkpoints=[]).encode())
    await node.look(2)
    assert node.runtime.host.checkpoints == {}


async def test_a_document_that_says_nothing_of_them_removes_none(node: WorkerNode) -> None:
    """As one that was stored before there were any checkpoints, or written by a compute-ctl that knows of none."""
    node.want(worker("a"), generation=1)
    await node.look(3)
    assert node.generation == 1
    assert node.runtime.host.checkpoints == WRITTEN


async def test_those_of_a_worker_that_is_desired_stay_though_they_are_not_named(node: WorkerNode) -> None:
    desired = [worker("a", job="j", checkpoint=True), worker("b", job="k")]
    assert node.kept.offer(compute(*desired, generation=1, checkpoints=[]).encode())
    await node.look(3)
    assert node.generation == 1
    assert node.runtime.host.checkpoints == {"j": "step-7"}


async def test_nothing_is_removed_while_a_worker_may_still_write(node: WorkerNode) -> None:
    node.want(worker("a", checkpoint=True), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    assert node.kept.offer(compute(generation=2, checkpoints=[]).encode())
    await node.look(3)
    assert node.runtime.host.checkpoints == WRITTEN
    node.runtime.go.set()
    await node.look(3)
    assert node.runtime.host.checkpoints == {}


def archive() -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as opened:
        opened.addfile(entry("step-9", 6, 0), io.BytesIO(b"step-9"))
    made.seek(0)
    return made


async def test_a_first_task_that_comes_from_elsewhere_begins_from_what_was_fetched(node: WorkerNode) -> None:
    node.archive = archive
    node.want(worker("a", job="j", checkpoint=True, restore=True), worker("b", job="k", checkpoint=True), generation=1)
    await node.look(3)
    assert node.states() == {"a.1": "running", "b.1": "running"}
    assert node.asked_for == ["a.1"], "the other one has what lies here"
    assert node.runtime.host.checkpoints == {"j": "step-9", "k": "step-3"}


async def test_a_copy_that_comes_or_goes_meanwhile_does_not_keep_it_from_starting(node: WorkerNode) -> None:
    def fetched() -> io.BytesIO:
        node.want(worker("a", job="j", checkpoint=True, restore=True, checkpoints=[]), generation=2)
        return archive()

    node.archive = fetched
    source = CheckpointSource(node="b", url="")
    node.want(worker("a", job="j", checkpoint=True, restore=True, checkpoints=[source]), generation=1)
    await node.look(3)
    assert (node.states(), node.asked_for) == ({"a.1": "running"}, ["a.1"])


async def test_one_that_cannot_be_put_in_place_is_not_fetched_again_at_once(node: WorkerNode) -> None:
    def fetched() -> io.BytesIO:
        node.runtime.available = False
        return archive()

    node.archive = fetched
    node.want(worker("a", job="j", checkpoint=True, restore=True), generation=1)
    await node.look()
    node.runtime.available = True
    await node.look(3)
    assert (node.states(), node.asked_for) == ({}, ["a.1"])
    assert node.reconciler.occupied() == {"a"}, "it waits"


async def test_it_begins_all_the_same_where_nothing_can_be_had(node: WorkerNode) -> None:
    node.want(worker("a", job="j", checkpoint=True, restore=True), generation=1)
    await node.look(3)
    assert node.states() == {"a.1": "running"}
    assert node.runtime.host.checkpoints["j"] == "step-7"
