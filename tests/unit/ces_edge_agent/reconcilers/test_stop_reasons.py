"""The reconciler of a node's workers stops them: whom, when, and how it is known afterwards why."""

from pathlib import Path

import pytest
from agent_parts import worker
from reconciled_node import WorkerNode

from ces_edge_agent.deadline import LEASE_OVER
from ces_edge_agent.reconcilers.stop_reasons import StopReasons


@pytest.fixture
def node(tmp_path: Path) -> WorkerNode:
    return WorkerNode(tmp_path)


async def test_who_was_stopped_for_want_of_a_lease_has_not_succeeded_however_it_ended(
    node: WorkerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def politely(key: str, grace_s: float) -> None:
        node.runtime.end(key, 0)

    monkeypatch.setattr(node.runtime, "stop", politely)
    node.want(worker("a"), worker("b", command=["exit", "0"]), generation=1)
    await node.look(2)
    node.time.passes(31)
    await node.look(3)
    codes = {each.allocation: (each.exit_code, each.reason, each.lapsed) for each in node.reconciler.status.workers}
    assert codes == {"a": (143, "stopped: the lease has run out", True), "b": (0, None, False)}
    node.reconciler = node.agent()
    node.renew()
    await node.look()
    again = {each.allocation: (each.exit_code, each.reason, each.lapsed) for each in node.reconciler.status.workers}
    assert again == codes, "an agent that starts again knows it still"


async def test_who_was_told_to_end_ends_though_agent_or_runtime_fail_in_between(node: WorkerNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    node.time.passes(31)
    await node.look()
    assert node.runtime.calls == ["start a.1", "stop a.1"]
    node.reconciler = node.agent()  # the agent is killed before anything has come of it
    node.renew()
    node.runtime.go.set()
    node.runtime.host.workers["a.1"] = node.runtime.host.workers["a.1"].model_copy(update={"state": "running"})
    await node.look(3)
    assert node.runtime.calls[2:] == ["stop a.1"]
    (status,) = node.reconciler.status.workers
    assert (status.state, status.lapsed) == ("exited", True)


async def test_what_was_ended_while_no_agent_was_there_is_reported_so(node: WorkerNode) -> None:
    node.want(worker("a"), worker("b", command=["exit", "3"]), generation=1)
    await node.look(2)
    for code in (0, 137):
        node.runtime.end("a.1", code, LEASE_OVER)
        ended = node.runtime.host.workers["a.1"].model_copy(update={"lapsed": True})
        node.runtime.host.workers["a.1"] = ended
        await node.look()
        a, b = node.reconciler.status.workers
        assert (a.lapsed, a.exit_code, a.reason) == (True, code or 143, "stopped: the lease has run out")
        assert (b.lapsed, b.exit_code, b.reason) == (False, 3, None)


async def test_notes_on_stops_are_forgotten_with_their_workers(node: WorkerNode) -> None:
    node.want(worker("a"), worker("b"), generation=1)
    await node.look(2)
    node.want(worker("b"), generation=2)
    await node.look()
    assert StopReasons(node.folder / "stopped.json").by_worker == {"a.1": "no longer desired"}
    await node.look(3)
    assert StopReasons(node.folder / "stopped.json").by_worker == {}


@pytest.mark.parametrize("content", [b"", b"[]", b"rubbish", b"\xff"])
def test_unreadable_notes_on_stops_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "stopped.json"
    path.write_bytes(content)
    assert StopReasons(path).by_worker == {}


async def test_a_full_disk_keeps_no_worker_from_being_stopped(
    node: WorkerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    node.want(worker("a"), generation=1)
    await node.look(2)
    monkeypatch.setattr("ces_edge_agent.reconcilers.stop_reasons.write_atomically", full)
    node.time.passes(31)
    await node.look(3)
    (status,) = node.reconciler.status.workers
    assert (status.state, status.lapsed) == ("exited", True)


async def test_the_end_of_the_lease_stops_all_but_those_told_to_keep_going(node: WorkerNode) -> None:
    node.want(worker("a"), worker("b", disconnect="keep"), generation=1)
    await node.look(2)
    node.time.passes(29)
    await node.look(2)
    assert node.states() == {"a.1": "running", "b.1": "running"}
    node.time.passes(2)
    await node.look(2)
    assert node.states() == {"a.1": "exited", "b.1": "running"}
    node.renew()
    await node.look(3)
    assert node.states() == {"a.1": "exited", "b.1": "running"}, "an incarnation is started once"


async def test_no_worker_outlives_the_lease_by_being_slow_to_end(node: WorkerNode) -> None:
    node.want(worker("a"), worker("b"), generation=1)
    await node.look(2)
    node.want(worker("b"), generation=2)
    await node.look(2)
    node.want(worker("b"), worker("c"), generation=3)
    node.networked = {"a", "b", "c"}
    await node.look(2)
    node.time.passes(28)
    node.want(worker("b"), generation=4)
    await node.look(2)
    node.time.passes(3)
    await node.look(2)
    assert node.states() == {"b.1": "exited"}
    assert node.runtime.graces == [5.0, 3.0, 1.0]


async def test_nothing_is_started_without_network_or_lease(node: WorkerNode) -> None:
    node.networked = set()
    node.want(worker("a"), generation=1)
    await node.look(2)
    assert node.runtime.calls == []
    node.networked = {"a"}
    node.time.passes(31)
    await node.look(2)
    assert node.runtime.calls == []
    node.renew()
    await node.look(2)
    assert node.states() == {"a.1": "running"}
