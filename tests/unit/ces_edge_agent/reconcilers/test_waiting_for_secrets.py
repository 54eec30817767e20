"""A start that needs secrets: it waits, says for what, and gives up when it is no longer to be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agent_parts import worker
from reconciled_node import WorkerNode, running
from waiting import until

from ces_edge_agent.ports import Refused
from ces_edge_agent.reconcilers import workers
from ces_edge_agent.reconcilers.starts import VANISHED, VANISHED_EXIT
from ces_edge_agent.secrets import SecretsAway, StartedBefore

AWAY = SecretsAway("no manager answers")
NEEDY = worker("a", secrets=["hub"])


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerNode:
    monkeypatch.setattr(workers, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr(workers, "LONG_START_S", 0.0)
    return WorkerNode(tmp_path)


async def test_it_waits_says_why_and_starts_with_them(node: WorkerNode) -> None:
    node.withheld = AWAY
    node.want(NEEDY, worker("b"), generation=1)

    def told() -> dict[str, str | None]:
        return {each.allocation: each.reason for each in node.reconciler.status.workers if each.state == "starting"}

    await running(node.reconciler, lambda: told().get("a") == "waits for its secrets: no manager answers")
    assert node.states()["b.1"] == "running", "others do not wait for it"
    assert "a.1" not in node.runtime.host.workers
    node.withheld = None
    await running(node.reconciler, lambda: node.states().get("a.1") == "running")
    assert node.runtime.host.secrets["a.1"] == {"hub": b"kept"}
    assert told() == {}


async def test_one_that_is_gone_refuses_the_worker(node: WorkerNode) -> None:
    node.withheld = Refused("no secret hub in tenant red")
    node.want(NEEDY, generation=1)
    await running(node.reconciler, lambda: node.states() == {"a.1": "refused"})
    (status,) = node.reconciler.status.workers
    assert status.reason == "no secret hub in tenant red"
    assert node.runtime.calls == []


async def test_one_that_has_run_already_is_not_started_again_and_counts_as_vanished(node: WorkerNode) -> None:
    node.withheld = StartedBefore("a has started on node n already")
    node.want(NEEDY, generation=1)
    await running(node.reconciler, lambda: node.states() == {"a.1": "exited"})
    (status,) = node.reconciler.status.workers
    assert (status.exit_code, status.reason) == (VANISHED_EXIT, VANISHED)
    assert node.runtime.calls == []


async def test_a_start_that_is_no_longer_to_be_ends_its_wait(node: WorkerNode) -> None:
    node.withheld = AWAY
    node.want(NEEDY, generation=1)
    await node.look(2)
    assert node.reconciler.occupied() == {"a"}
    node.want(generation=2)
    await until(lambda: node.reconciler.occupied() == set())
    await node.look(2)
    assert (node.generation, node.runtime.calls) == (2, [])


async def test_so_does_the_end_of_the_lease_while_they_are_on_their_way(node: WorkerNode) -> None:
    node.withheld = AWAY
    node.want(NEEDY, generation=1)
    await node.look(2)
    node.time.passes(40)
    node.withheld = None
    await until(lambda: node.reconciler.occupied() == set())
    await asyncio.sleep(0)
    assert node.runtime.calls == []
