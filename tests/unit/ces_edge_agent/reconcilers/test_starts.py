"""A worker that is gone without a trace has ended: it is said so once and for all, and never started again."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_parts import worker
from reconciled_node import WorkerNode

from ces_edge_agent.reconcilers.starts import VANISHED, VANISHED_EXIT, Starts


@pytest.fixture
def node(tmp_path: Path) -> WorkerNode:
    return WorkerNode(tmp_path)


def told(node: WorkerNode) -> dict[str, tuple[str, int | None, str | None]]:
    return {
        f"{each.allocation}.{each.incarnation}": (each.state, each.exit_code, each.reason)
        for each in node.reconciler.status.workers
    }


@pytest.mark.parametrize("restarted", [False, True], ids=["the same agent", "an agent that starts again"])
async def test_a_worker_that_vanishes_has_ended_without_an_exit_code_of_its_own(
    node: WorkerNode, restarted: bool
) -> None:
    node.want(worker("a"), worker("b"), generation=1)
    await node.look(2)
    del node.runtime.host.workers["a.1"]
    if restarted:
        node.reconciler = node.agent()
    await node.look(3)
    assert told(node) == {"a.1": ("exited", VANISHED_EXIT, VANISHED), "b.1": ("running", None, None)}
    assert node.runtime.calls == ["start a.1", "start b.1"]
    assert node.reconciler.occupied() == {"b"}
    node.want(worker("a", 2), worker("b"), generation=2)
    await node.look(3)
    assert node.states() == {"a.2": "running", "b.1": "running"}
    assert Starts(node.folder / "started.json").by_worker == {"a.2": None, "b.1": None}


@pytest.mark.parametrize("code", [0, 3])
async def test_one_whose_end_was_seen_ended_so(node: WorkerNode, code: int) -> None:
    """Somebody tidies up, before the manager has heard of it."""
    node.want(worker("a", command=["exit", str(code)]), generation=1)
    await node.look(2)
    node.runtime.host.workers.clear()
    node.reconciler = node.agent()
    await node.look(3)
    assert told(node) == {"a.1": ("exited", code, None)}
    assert node.runtime.calls == ["start a.1"]


async def test_one_that_was_told_to_end_and_vanishes_has_ended_for_that_reason(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    node.time.passes(31)
    await node.look()
    node.reconciler = node.agent()  # killed while it stops the worker
    node.runtime.host.workers.clear()
    node.renew()
    await node.look(2)
    (status,) = node.reconciler.status.workers
    assert (status.state, status.lapsed, status.reason) == ("exited", True, "stopped: the lease has run out")


async def test_a_start_that_did_not_come_about_is_tried_again(node: WorkerNode) -> None:
    node.runtime.go.clear()
    node.want(worker("a"), generation=1)
    await node.look()
    node.reconciler = node.agent()  # killed while it starts the worker, before anything is there
    node.runtime.go.set()
    node.runtime.failures = 2
    await node.look(4)
    assert node.states() == {"a.1": "running"}


async def test_what_an_agent_started_just_before_it_was_killed_is_known_to_the_next(node: WorkerNode) -> None:
    await node.runtime.start(worker("a"))  # and no note of it came to the disk
    node.want(worker("a"), generation=1)
    await node.look()
    del node.runtime.host.workers["a.1"]
    await node.look()
    assert told(node) == {"a.1": ("exited", VANISHED_EXIT, VANISHED)}


async def test_without_a_document_nothing_is_forgotten(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.kept.current = None
    node.reconciler = node.agent()
    await node.look()
    assert Starts(node.folder / "started.json").by_worker == {"a.1": None}


@pytest.mark.parametrize("content", [b"", b"[]", b"rubbish", b"\xff", b'{"a.1": 3}'])
def test_unreadable_notes_on_starts_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "started.json"
    path.write_bytes(content)
    assert Starts(path).by_worker == {}


async def test_a_full_disk_keeps_no_worker_from_being_started(
    node: WorkerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ces_edge_agent.reconcilers.starts.write_atomically", full)
    node.want(worker("a"), generation=1)
    await node.look(2)
    del node.runtime.host.workers["a.1"]
    await node.look()
    assert told(node) == {"a.1": ("exited", VANISHED_EXIT, VANISHED)}
