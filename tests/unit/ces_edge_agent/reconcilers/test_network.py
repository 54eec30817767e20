"""The reconciler of a node's network: sandboxes first, then their network, and what it dares to report."""

from pathlib import Path

import pytest
from agent_parts import FakeNetwork, network
from fake_runtime import FakeRuntime
from reconciled_node import running

from ces_common.messages.desired import DesiredNetwork, Endpoint
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.service import InputService
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.reconcilers.network import NetworkReconciler


class NetworkNode:
    def __init__(self, folder: Path, datasets: Path | None = None) -> None:
        self.runtime = FakeRuntime(folder)
        self.network = FakeNetwork()
        self.kept = StoredDocument(folder / "desired.json", DesiredNetwork, "n")
        self.occupied: set[str] = set()
        self.changes = 0
        self.inputs = InputService("n", datasets, self.network, "127.0.0.1", folder / "data-port")
        self.begin_again()

    def begin_again(self) -> None:
        """The agent's reconciler as after a restart of the agent."""
        self.reconciler = NetworkReconciler(
            "n", self.runtime, self.network, self.kept, self.inputs, lambda: self.occupied, self._changed
        )

    def _changed(self) -> None:
        self.changes += 1

    def want(self, desired: DesiredNetwork) -> None:
        assert self.kept.offer(desired.encode())


@pytest.fixture
def wired(tmp_path: Path) -> NetworkNode:
    return NetworkNode(tmp_path)


async def test_sandboxes_come_before_their_network_and_are_reported(wired: NetworkNode) -> None:
    wired.want(network("a", "b", generation=3))
    assert wired.reconciler.networked() == set()
    assert await wired.reconciler.step()
    assert set(wired.runtime.host.sandboxes) == {"a", "b"}
    assert wired.network.sandboxes == [{"a", "b"}]
    assert (wired.reconciler.applied.generation, wired.reconciler.applied.jobs) == (3, ["j.1"])
    assert wired.reconciler.networked() == {"a", "b"}
    assert wired.changes == 1
    assert await wired.reconciler.step()
    assert wired.changes == 1


async def test_no_document_no_deed(wired: NetworkNode) -> None:
    wired.runtime.host.sandboxes["a"] = Endpoint(allocation="a", job="j.1", address="10.0.0.2", hostname="t")
    assert await wired.reconciler.step()
    assert (set(wired.runtime.host.sandboxes), wired.network.applied) == ({"a"}, [])


async def test_a_sandbox_stays_while_its_worker_lives(wired: NetworkNode) -> None:
    wired.want(network("a", generation=1))
    await wired.reconciler.step()
    wired.occupied = {"a"}
    wired.want(network(generation=2))
    assert not await wired.reconciler.step(), "it is to be looked at again soon"
    assert set(wired.runtime.host.sandboxes) == {"a"}
    wired.occupied = set()
    assert await wired.reconciler.step()
    assert wired.runtime.host.sandboxes == {}


async def test_a_name_that_leads_elsewhere_is_told_where_workers_run(wired: NetworkNode) -> None:
    def where(address: str, generation: int) -> DesiredNetwork:
        made = network("a", generation=generation)
        ends = [each.model_copy(update={"hosts": {"peer": address}}) for each in made.endpoints]
        return made.model_copy(update={"endpoints": ends})

    for generation, address in enumerate(("10.0.1.2", "10.0.2.2"), 1):
        wired.want(where(address, generation))
        await wired.reconciler.step()
        assert wired.runtime.host.sandboxes["a"].hosts == {"peer": address}


async def test_a_name_that_could_not_be_told_is_told_later_also_by_an_agent_that_began_since(
    wired: NetworkNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def where(address: str, generation: int) -> DesiredNetwork:
        made = network("a", generation=generation)
        ends = [each.model_copy(update={"hosts": {"peer": address}}) for each in made.endpoints]
        return made.model_copy(update={"endpoints": ends})

    async def fails(_: Endpoint) -> None:
        raise OSError("no space left")

    wired.want(where("10.0.1.2", 1))
    await wired.reconciler.step()
    wired.want(where("10.0.2.2", 2))
    with monkeypatch.context() as broken:
        broken.setattr(wired.runtime, "ensure_sandbox", fails)
        assert not await wired.reconciler.step()
    assert await wired.reconciler.step()
    assert wired.runtime.host.sandboxes["a"].hosts == {"peer": "10.0.2.2"}
    wired.want(where("10.0.3.2", 3))
    wired.begin_again()
    assert await wired.reconciler.step()
    assert wired.runtime.host.sandboxes["a"].hosts == {"peer": "10.0.3.2"}


async def test_nothing_starts_by_a_document_that_is_not_applied_yet(wired: NetworkNode) -> None:
    wired.want(network("a", generation=1))
    await wired.reconciler.step()
    wired.want(network("a", "b", generation=2))
    assert wired.reconciler.networked() == {"a"}, "of the same attempt, which is in place"
    await wired.reconciler.step()
    assert wired.reconciler.networked() == {"a", "b"}


async def test_what_failed_is_reported_by_attempt_and_tried_again(wired: NetworkNode) -> None:
    wired.network.failing = {"j.1": "no such device"}
    wired.want(network("a", generation=1))
    assert not await wired.reconciler.step()
    assert (wired.reconciler.applied.jobs, wired.reconciler.applied.failed) == ([], {"j.1": "no such device"})
    assert wired.reconciler.networked() == set()
    wired.network.failing = {}
    assert await wired.reconciler.step()
    assert (wired.reconciler.applied.jobs, wired.reconciler.applied.failed) == (["j.1"], {})


async def test_a_failure_of_the_node_concerns_every_attempt(wired: NetworkNode) -> None:
    wired.network.failing = {"": "no namespace", "j.1": "its own"}
    two = network("a", generation=1)
    more = network("b", job="k.1").endpoints
    wired.want(two.model_copy(update={"endpoints": [*two.endpoints, *more]}))
    assert not await wired.reconciler.step()
    assert wired.reconciler.applied.failed == {"j.1": "its own", "k.1": "no namespace"}


async def test_a_failure_of_an_idle_node_is_tried_again_too(wired: NetworkNode) -> None:
    wired.network.failing = {"": "no namespace"}
    wired.want(network(generation=1))
    assert not await wired.reconciler.step()


async def test_a_sandbox_that_cannot_be_made_fails_its_attempt_only(
    wired: NetworkNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure = wired.runtime.ensure_sandbox

    async def sometimes(endpoint: Endpoint) -> Path | None:
        if endpoint.allocation == "a":
            raise RuntimeUnavailable("no room")
        return await ensure(endpoint)

    monkeypatch.setattr(wired.runtime, "ensure_sandbox", sometimes)
    one = network("a", generation=1)
    more = network("b", job="k.1").endpoints
    wired.want(one.model_copy(update={"endpoints": [*one.endpoints, *more]}))
    assert not await wired.reconciler.step()
    assert wired.reconciler.applied.jobs == ["k.1"]
    assert wired.reconciler.applied.failed == {"j.1": "sandbox of t-a: no room"}


async def test_news_do_not_wait_for_the_removal_of_the_old(wired: NetworkNode, monkeypatch: pytest.MonkeyPatch) -> None:
    wired.want(network("a", generation=1))
    await wired.reconciler.step()

    async def stuck(allocation: str) -> None:
        raise RuntimeUnavailable("busy")

    monkeypatch.setattr(wired.runtime, "remove_sandbox", stuck)
    wired.want(network("b", generation=2, job="k.1"))
    with pytest.raises(RuntimeUnavailable):
        await wired.reconciler.step()
    assert wired.reconciler.applied.jobs == ["k.1"]


async def test_a_runtime_that_is_away_ends_no_network_reconciler(
    wired: NetworkNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    wired.want(network("a", generation=1))
    wired.runtime.available = False
    sandboxes = wired.runtime.sandboxes

    async def back_again() -> object:
        try:
            return await sandboxes()
        finally:
            wired.runtime.available = True

    monkeypatch.setattr(wired.runtime, "sandboxes", back_again)
    await running(wired.reconciler, lambda: wired.reconciler.applied.jobs == ["j.1"])


async def test_data_is_served_while_the_runtime_is_away(tmp_path: Path) -> None:
    (tmp_path / "datasets" / "mnist").mkdir(parents=True)
    wired = NetworkNode(tmp_path, tmp_path / "datasets")
    wired.want(network("a", generation=1).model_copy(update={"router": "10.0.0.1"}))
    wired.runtime.available = False
    with pytest.raises(RuntimeUnavailable):
        await wired.reconciler.step()
    report = await wired.inputs.report()
    assert report is not None
    assert report.datasets == ["mnist"]
    wired.inputs.close()
