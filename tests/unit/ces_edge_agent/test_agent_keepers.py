"""The keepers over a runtime and a network without a machine: what they do, and what they dare to report."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_parts import FakeNetwork, FakeTime, compute, network, worker

from ces_common.messages.wanted import ComputeWanted, Endpoint, NetworkWanted, WorkerWanted
from ces_edge_agent.compute import LOOK_S, ComputeKeeper
from ces_edge_agent.deadline import LEASE_OVER
from ces_edge_agent.documents import Kept
from ces_edge_agent.inputs.keeper import InputKeeper
from ces_edge_agent.lease import Lease
from ces_edge_agent.network import NetworkKeeper
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.runtimes.fake import FakeRuntime
from ces_edge_agent.stops import Stops


class SlowRuntime(FakeRuntime):
    """Starts and stops wait for ``go``."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.go = asyncio.Event()
        self.go.set()
        self.calls: list[str] = []
        self.graces: list[float] = []
        self.failures = 0

    async def start(self, worker: WorkerWanted) -> None:
        self.calls.append(f"start {worker.key}")
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise RuntimeUnavailable("busy")
        await super().start(worker)

    async def stop(self, key: str, grace_s: float) -> None:
        self.calls.append(f"stop {key}")
        self.graces.append(grace_s)
        await self.go.wait()
        await super().stop(key, grace_s)


class ComputeNode:
    """A compute keeper with everything around it."""

    def __init__(self, folder: Path) -> None:
        self.time = FakeTime()
        self.runtime = SlowRuntime(folder)
        self.kept = Kept(folder / "wanted.json", ComputeWanted, "n")
        self.lease = Lease(folder, self.time.clocks())
        self.networked = {"a", "b"}
        self.changes = 0
        self.folder = folder
        self.keeper = self.agent()
        self.renew()

    def agent(self) -> ComputeKeeper:
        """The keeper of an agent that starts, with what earlier ones left on disk."""
        stops = Stops(self.folder / "stopped.json")
        return ComputeKeeper(
            "n", self.runtime, self.kept, self.lease, stops, lambda: self.networked, 5.0, self._changed
        )

    def _changed(self) -> None:
        self.changes += 1

    def renew(self) -> None:
        self.lease.renew(self.time.steady, 30)

    def want(self, *workers: WorkerWanted, generation: int) -> None:
        assert self.kept.offer(compute(*workers, generation=generation).encode())

    async def look(self, times: int = 1) -> None:
        """Look, and let what was begun go as far as it can."""
        for _ in range(times):
            await self.keeper.step()
            for _ in range(10):
                await asyncio.sleep(0)

    def states(self) -> dict[str, str]:
        return {f"{each.allocation}.{each.incarnation}": each.state for each in self.keeper.status.workers}

    @property
    def generation(self) -> int:
        return self.keeper.status.generation


@pytest.fixture
def node(tmp_path: Path) -> ComputeNode:
    return ComputeNode(tmp_path)


async def test_workers_become_as_wanted_and_are_reported(node: ComputeNode) -> None:
    node.want(worker("a"), worker("b", command=["exit", "3"]), generation=4)
    await node.look(2)
    assert node.states() == {"a.1": "running", "b.1": "exited"}
    assert node.generation == 4
    assert node.keeper.occupied() == {"a"}
    node.want(generation=5)
    await node.look(3)
    assert node.states() == {}
    assert node.generation == 5
    assert node.keeper.occupied() == set()


async def test_who_was_stopped_for_want_of_a_lease_has_not_succeeded_however_it_ended(
    node: ComputeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def politely(key: str, grace_s: float) -> None:
        node.runtime.end(key, 0)

    monkeypatch.setattr(node.runtime, "stop", politely)
    node.want(worker("a"), worker("b", command=["exit", "0"]), generation=1)
    await node.look(2)
    node.time.passes(31)
    await node.look(3)
    codes = {each.allocation: (each.exit_code, each.reason, each.lapsed) for each in node.keeper.status.workers}
    assert codes == {"a": (143, "stopped: the lease has run out", True), "b": (0, None, False)}
    node.keeper = node.agent()
    node.renew()
    await node.look()
    again = {each.allocation: (each.exit_code, each.reason, each.lapsed) for each in node.keeper.status.workers}
    assert again == codes, "an agent that starts again knows it still"


async def test_who_was_told_to_end_ends_though_agent_or_runtime_fail_in_between(node: ComputeNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.go.clear()
    node.time.passes(31)
    await node.look()
    assert node.runtime.calls == ["start a.1", "stop a.1"]
    node.keeper = node.agent()  # the agent is killed before anything has come of it
    node.renew()
    node.runtime.go.set()
    node.runtime.host.workers["a.1"] = node.runtime.host.workers["a.1"].model_copy(update={"state": "running"})
    await node.look(3)
    assert node.runtime.calls[2:] == ["stop a.1"]
    (status,) = node.keeper.status.workers
    assert (status.state, status.lapsed) == ("exited", True)


async def test_what_was_ended_while_no_agent_was_there_is_reported_so(node: ComputeNode) -> None:
    node.want(worker("a"), worker("b", command=["exit", "3"]), generation=1)
    await node.look(2)
    for code in (0, 137):
        node.runtime.end("a.1", code, LEASE_OVER)
        ended = node.runtime.host.workers["a.1"].model_copy(update={"lapsed": True})
        node.runtime.host.workers["a.1"] = ended
        await node.look()
        a, b = node.keeper.status.workers
        assert (a.lapsed, a.exit_code, a.reason) == (True, code or 143, "stopped: the lease has run out")
        assert (b.lapsed, b.exit_code, b.reason) == (False, 3, None)


async def test_notes_on_stops_are_forgotten_with_their_workers(node: ComputeNode) -> None:
    node.want(worker("a"), worker("b"), generation=1)
    await node.look(2)
    node.want(worker("b"), generation=2)
    await node.look()
    assert Stops(node.folder / "stopped.json").told == {"a.1": "no longer wanted"}
    await node.look(3)
    assert Stops(node.folder / "stopped.json").told == {}


@pytest.mark.parametrize("content", [b"", b"[]", b"rubbish", b"\xff"])
def test_unreadable_notes_on_stops_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "stopped.json"
    path.write_bytes(content)
    assert Stops(path).told == {}


async def test_a_full_disk_keeps_no_worker_from_being_stopped(
    node: ComputeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    node.want(worker("a"), generation=1)
    await node.look(2)
    monkeypatch.setattr("ces_edge_agent.stops.write_atomically", full)
    node.time.passes(31)
    await node.look(3)
    (status,) = node.keeper.status.workers
    assert (status.state, status.lapsed) == ("exited", True)


async def test_a_report_is_announced_when_it_differs(node: ComputeNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    before = node.changes
    await node.look(3)
    assert node.changes == before
    node.runtime.end("a.1", 1)
    await node.look()
    assert node.changes == before + 1


async def test_a_generation_is_not_reached_while_something_unwanted_lives(node: ComputeNode) -> None:
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


async def test_a_generation_is_not_reached_while_a_slow_start_may_yet_bring_the_unwanted_to_life(
    node: ComputeNode,
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


async def test_nor_while_an_earlier_incarnation_is_being_started(node: ComputeNode) -> None:
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
    node: ComputeNode, monkeypatch: pytest.MonkeyPatch
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
    await node.keeper.step()
    assert "a.1" in node.runtime.host.workers
    assert node.generation == 1


async def test_without_a_document_nothing_is_reached_nor_stopped(node: ComputeNode) -> None:
    await node.runtime.start(worker("a"))
    await node.look(2)
    assert (node.states(), node.generation) == ({"a.1": "running"}, 0)
    node.time.passes(31)
    await node.look(2)
    assert node.states() == {"a.1": "exited"}


async def test_a_refused_worker_is_reported_with_the_reason_and_not_tried_again(node: ComputeNode) -> None:
    node.want(worker("a", command=["no-such-program"]), generation=1)
    await node.look(4)
    (status,) = node.keeper.status.workers
    assert (status.state, status.reason) == ("refused", "no-such-program: unknown on this node")
    assert node.generation == 1
    assert node.runtime.calls == ["start a.1"]
    node.want(worker("a", 2), generation=2)
    await node.look(3)
    assert node.states() == {"a.2": "running"}


async def test_what_fails_is_tried_again_at_the_next_look_and_not_before(node: ComputeNode) -> None:
    node.runtime.failures = 2
    node.want(worker("a"), generation=1)
    while await node.keeper.hint.wait(0):
        continue
    await node.look()
    assert not await node.keeper.hint.wait(0), "or a runtime that is away would be asked without a pause"
    await node.look(3)
    assert node.runtime.calls == ["start a.1"] * 3
    assert node.states() == {"a.1": "running"}


async def test_the_end_of_the_lease_stops_all_but_those_told_to_keep_going(node: ComputeNode) -> None:
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


async def test_no_worker_outlives_the_lease_by_being_slow_to_end(node: ComputeNode) -> None:
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


async def test_nothing_is_started_without_network_or_lease(node: ComputeNode) -> None:
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


async def test_pause_and_resume(node: ComputeNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.want(worker("a", paused=True), generation=2)
    await node.look(2)
    assert node.states() == {"a.1": "paused"}
    node.want(worker("a"), generation=3)
    await node.look(2)
    assert node.states() == {"a.1": "running"}


async def running(keeper: ComputeKeeper | NetworkKeeper, until: Callable[[], bool]) -> None:
    """Let a keeper run until a condition holds."""
    task = asyncio.create_task(keeper.run())
    try:
        async with asyncio.timeout(60):
            while not until():
                assert not task.done(), task.exception()
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_runtime_that_is_away_ends_no_keeper(node: ComputeNode) -> None:
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

    node.runtime.workers = counted  # type: ignore[method-assign, assignment]
    await running(node.keeper, lambda: node.states() == {"a.1": "running"})
    assert asked >= 3


async def test_an_exit_is_noticed_unasked(node: ComputeNode) -> None:
    node.want(worker("a"), generation=1)
    await node.look(2)
    node.runtime.end("a.1", 7)
    assert LOOK_S < 5
    await running(node.keeper, lambda: node.states() == {"a.1": "exited"})


# the network


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


async def test_generations_of_a_former_database_are_not_reported_for_the_new_one(node: ComputeNode) -> None:
    """Or the manager would take a high old number for the confirmation of a stop that it asked for just now."""
    node.want(worker("a"), generation=900)
    await node.look(2)
    assert (node.keeper.status.epoch, node.generation) == ("e", 900)
    node.runtime.go.clear()
    assert node.kept.offer(compute(worker("b"), generation=4, epoch="new").encode())
    await node.look(2)
    assert (node.keeper.status.epoch, node.generation) == ("new", 0)
    node.runtime.go.set()
    await node.look(3)
    assert (node.keeper.status.epoch, node.generation) == ("new", 4)
