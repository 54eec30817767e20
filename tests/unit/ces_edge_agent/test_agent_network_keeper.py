"""The keeper of a node's network: holders first, then their network, and what it dares to report."""

from pathlib import Path

import pytest
from agent_parts import FakeNetwork, network
from keepers import running

from ces_common.messages.wanted import Endpoint, NetworkWanted
from ces_edge_agent.documents import Kept
from ces_edge_agent.inputs.keeper import InputKeeper
from ces_edge_agent.network import NetworkKeeper
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.runtimes.fake import FakeRuntime


class NetworkNode:
    def __init__(self, folder: Path, datasets: Path | None = None) -> None:
        self.runtime = FakeRuntime(folder)
        self.network = FakeNetwork()
        self.kept = Kept(folder / "wanted.json", NetworkWanted, "n")
        self.occupied: set[str] = set()
        self.changes = 0
        self.inputs = InputKeeper("n", datasets, self.network, "127.0.0.1", folder / "data-port")
        self.keeper = NetworkKeeper(
            "n", self.runtime, self.network, self.kept, self.inputs, lambda: self.occupied, self._changed
        )

    def _changed(self) -> None:
        self.changes += 1

    def want(self, wanted: NetworkWanted) -> None:
        assert self.kept.offer(wanted.encode())


@pytest.fixture
def wired(tmp_path: Path) -> NetworkNode:
    return NetworkNode(tmp_path)


async def test_holders_come_before_their_network_and_are_reported(wired: NetworkNode) -> None:
    wired.want(network("a", "b", generation=3))
    assert wired.keeper.networked() == set()
    assert await wired.keeper.step()
    assert set(wired.runtime.host.holders) == {"a", "b"}
    assert wired.network.holders == [{"a", "b"}]
    assert (wired.keeper.applied.generation, wired.keeper.applied.jobs) == (3, ["j.1"])
    assert wired.keeper.networked() == {"a", "b"}
    assert wired.changes == 1
    assert await wired.keeper.step()
    assert wired.changes == 1


async def test_no_document_no_deed(wired: NetworkNode) -> None:
    wired.runtime.host.holders["a"] = Endpoint(allocation="a", job="j.1", address="10.0.0.2", hostname="t")
    assert await wired.keeper.step()
    assert (set(wired.runtime.host.holders), wired.network.applied) == ({"a"}, [])


async def test_a_holder_stays_while_its_worker_lives(wired: NetworkNode) -> None:
    wired.want(network("a", generation=1))
    await wired.keeper.step()
    wired.occupied = {"a"}
    wired.want(network(generation=2))
    assert not await wired.keeper.step(), "it is to be looked at again soon"
    assert set(wired.runtime.host.holders) == {"a"}
    wired.occupied = set()
    assert await wired.keeper.step()
    assert wired.runtime.host.holders == {}


async def test_what_failed_is_reported_by_attempt_and_tried_again(wired: NetworkNode) -> None:
    wired.network.failing = {"j.1": "no such device"}
    wired.want(network("a", generation=1))
    assert not await wired.keeper.step()
    assert (wired.keeper.applied.jobs, wired.keeper.applied.failed) == ([], {"j.1": "no such device"})
    assert wired.keeper.networked() == set()
    wired.network.failing = {}
    assert await wired.keeper.step()
    assert (wired.keeper.applied.jobs, wired.keeper.applied.failed) == (["j.1"], {})


async def test_a_failure_of_the_node_concerns_every_attempt(wired: NetworkNode) -> None:
    wired.network.failing = {"": "no namespace", "j.1": "its own"}
    two = network("a", generation=1)
    more = network("b", job="k.1").endpoints
    wired.want(two.model_copy(update={"endpoints": [*two.endpoints, *more]}))
    assert not await wired.keeper.step()
    assert wired.keeper.applied.failed == {"j.1": "its own", "k.1": "no namespace"}


async def test_a_failure_of_an_idle_node_is_tried_again_too(wired: NetworkNode) -> None:
    wired.network.failing = {"": "no namespace"}
    wired.want(network(generation=1))
    assert not await wired.keeper.step()


async def test_a_holder_that_cannot_be_made_fails_its_attempt_only(
    wired: NetworkNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure = wired.runtime.ensure_holder

    async def sometimes(endpoint: Endpoint) -> Path | None:
        if endpoint.allocation == "a":
            raise RuntimeUnavailable("no room")
        return await ensure(endpoint)

    monkeypatch.setattr(wired.runtime, "ensure_holder", sometimes)
    one = network("a", generation=1)
    more = network("b", job="k.1").endpoints
    wired.want(one.model_copy(update={"endpoints": [*one.endpoints, *more]}))
    assert not await wired.keeper.step()
    assert wired.keeper.applied.jobs == ["k.1"]
    assert wired.keeper.applied.failed == {"j.1": "holder of t-a: no room"}


async def test_news_do_not_wait_for_the_removal_of_the_old(wired: NetworkNode, monkeypatch: pytest.MonkeyPatch) -> None:
    wired.want(network("a", generation=1))
    await wired.keeper.step()

    async def stuck(allocation: str) -> None:
        raise RuntimeUnavailable("busy")

    monkeypatch.setattr(wired.runtime, "remove_holder", stuck)
    wired.want(network("b", generation=2, job="k.1"))
    with pytest.raises(RuntimeUnavailable):
        await wired.keeper.step()
    assert wired.keeper.applied.jobs == ["k.1"]


async def test_a_runtime_that_is_away_ends_no_network_keeper(wired: NetworkNode) -> None:
    wired.want(network("a", generation=1))
    wired.runtime.available = False
    holders = wired.runtime.holders

    async def back_again() -> object:
        try:
            return await holders()
        finally:
            wired.runtime.available = True

    wired.runtime.holders = back_again  # type: ignore[method-assign, assignment]
    await running(wired.keeper, lambda: wired.keeper.applied.jobs == ["j.1"])


async def test_data_is_served_while_the_runtime_is_away(tmp_path: Path) -> None:
    (tmp_path / "datasets" / "mnist").mkdir(parents=True)
    wired = NetworkNode(tmp_path, tmp_path / "datasets")
    wired.want(network("a", generation=1).model_copy(update={"router": "10.0.0.1"}))
    wired.runtime.available = False
    with pytest.raises(RuntimeUnavailable):
        await wired.keeper.step()
    report = await wired.inputs.report()
    assert report is not None
    assert report.datasets == ["mnist"]
    wired.inputs.close()
