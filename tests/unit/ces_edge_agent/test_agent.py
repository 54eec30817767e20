"""The whole agent over a bus in memory, with a runtime and a network without a machine."""

import asyncio
import json
import sys
from itertools import groupby
from typing import Any

import pytest
from agent_parts import FakeNetwork, compute, network, worker
from agent_world import BEAT_S, World
from confinements import APART
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import AccessRefused, Callback, RemoteError
from ces_common.messages.agent_queries import LinkProbe, LinkProbed, LogAnswer, LogQuery
from ces_common.messages.confinement import ConfinementReport
from ces_common.messages.energy import EnergyReport
from ces_common.messages.reports import (
    LinkKeys,
    LinkReport,
    LinkStatus,
    LinkUsage,
    Progress,
    Status,
)
from ces_edge_agent.energy.account import Account
from ces_edge_agent.energy.meters import Model
from ces_edge_agent.ports import DataPlaneError, RuntimeUnavailable
from ces_edge_agent.scores import service


async def test_what_is_desired_before_it_starts_is_read_and_what_comes_later_is_heard(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=2))
    agent = await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    assert agent.missing() is None
    await world.want(compute(generation=3))
    await world.until(lambda: world.states() == {})
    await world.want(network(generation=4))
    await world.until(lambda: world.host.sandboxes == {})


async def test_what_is_told_to_nobody_is_found_at_the_next_resync(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start(resync_s=5 * BEAT_S)
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.broker.bucket["n.compute"] = compute(generation=2).encode()
    await world.until(lambda: world.states() == {})


async def test_an_agent_that_starts_before_anybody_can_tell_it_what_to_do_goes_on_asking(world: World) -> None:
    world.readable = False
    agent = await world.start()
    await world.until(lambda: world.fetches > 3)
    assert agent.missing() == "word from the manager", "it might hold a document that was replaced while it was away"
    world.broker.bucket |= {
        "n.network": network("a", generation=1).encode(),
        "n.compute": compute(worker("a"), generation=1).encode(),
    }
    world.readable = True
    await world.until(lambda: world.states() == {"a.1": "running"})


class ReconnectingBus(MemoryBus):
    """A connection that is lost when a test says so."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(broker)
        self.callbacks: list[Callback] = []

    def on_reconnect(self, callback: Callback) -> None:
        self.callbacks.append(callback)


async def test_what_changed_while_it_was_disconnected_is_read_when_the_manager_is_back_too(world: World) -> None:
    bus = ReconnectingBus(world.broker)
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start(bus)
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.broker.bucket["n.compute"] = compute(generation=2).encode()
    world.readable, before = False, world.fetches
    for callback in bus.callbacks:
        await callback()
    await world.until(lambda: world.fetches > before)
    assert world.states() == {"a.1": "running"}
    world.readable = True
    await world.until(lambda: world.states() == {})


async def test_both_reports_tell_the_generation_reached_and_are_repeated(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=2))
    await world.start()
    await world.until(lambda: any(each.generation == 2 and each.workers for each in world.said["status"]))
    await world.until(lambda: any(each.jobs == ["j.1"] for each in world.said["applied"]))
    world.said["status"].clear()
    world.said["applied"].clear()
    await world.until(lambda: len(world.said["status"]) > 2 and len(world.said["applied"]) > 2)
    last: Status = world.said["status"][-1]
    assert (last.node, last.epoch, last.generation) == ("n", "e", 2)
    assert [(each.allocation, each.state) for each in last.workers] == [("a", "running")]


async def test_older_foreign_and_broken_documents_are_ignored(world: World) -> None:
    await world.want(network("a", generation=5), compute(worker("a"), generation=5))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.want(compute(generation=4))
    await world.bus.kv_put("n.compute", compute(node="other", generation=9).encode())
    await world.bus.kv_put("n.compute", b"rubbish")
    await world.bus.kv_delete("n.compute")
    await world.beats_more()
    assert world.states() == {"a.1": "running"}
    await world.want(compute(generation=6))
    await world.until(lambda: world.states() == {})


async def test_heartbeats_carry_measurements_and_renew_the_lease(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    agent = await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    for _ in range(4):
        world.time.passes(20)
        await world.until(lambda: agent._lease.remaining() > 20)
    assert world.states() == {"a.1": "running"}
    beat = world.beats[-1]
    assert beat.memory > 0
    assert beat.links == [LinkUsage(peer="b", sent=1.0, received=2.0)]
    assert [usage.allocation for usage in beat.workers] == ["a"]
    assert len({each.boot for each in world.beats}) == 1


async def test_heartbeats_tell_of_energy_where_anything_does(world: World) -> None:
    await world.start()
    await world.beats_more()
    assert world.beats[-1].energy is None, "unknown is not nothing"
    await world.stop()
    await world.want(network("a", generation=1), compute(worker("a", cpu=500), generation=1))
    await world.start(account=Account(Model([10, 10]), 1000, 10))
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.beats_more()
    world.time.passes(2)

    def first() -> EnergyReport | None:
        return next((each.energy for each in world.beats if each.energy is not None and each.energy.total), None)

    await world.until(lambda: first() is not None)
    energy = first()
    assert energy is not None
    assert energy.total == 20_000_000
    assert (energy.source, energy.meter, energy.watts) == ("modelled", "model", 10)
    assert energy.allocations["a"] >= 10_000_000, "half of the idle machine is reserved"


async def test_an_answer_that_takes_longer_than_an_interval_counts_and_holds_up_no_heartbeat(world: World) -> None:
    agent = await world.start()
    world.late = 4
    await world.until(lambda: agent.missing() is None)
    assert len(world.beats) > world.late
    assert agent._lease.remaining() > 0


async def test_a_link_that_changes_is_reported_without_waiting_for_the_next_heartbeat(world: World) -> None:
    await world.start(heartbeat_s=3600)
    await world.until(lambda: len(world.beats) == 1)
    assert world.said["links"] == [], "nothing is said of links before they are known"
    world.network.states = [LinkStatus(peer="b", state="down", reason="device to-b has no carrier")]
    world.network.links_changed.set()
    told = LinkReport(node="n", links=world.network.states)
    await world.until(lambda: told in world.said["links"])  # twice, where the first answer comes just then


async def test_a_link_is_probed_when_asked_and_what_cannot_be_is_told(world: World) -> None:
    await world.start()
    await world.until(lambda: len(world.beats) > 0)

    async def ask(peer: str) -> LinkProbed:
        query = LinkProbe(peer=peer, part="send", seconds=2)
        return LinkProbed.model_validate_json(await world.bus.request("ces.v1.rpc.agent.n.probe", query.encode()))

    assert await ask("b") == LinkProbed(rate=2e6, round_trip_s=0.002)
    with pytest.raises(RemoteError, match="no link to c"):
        await ask("c")


async def test_the_key_of_encrypted_links_is_told_before_there_are_any_and_replaced_when_asked(world: World) -> None:
    await world.start()
    await world.until(lambda: len(world.beats) > 0)
    assert world.said["links"] == [], "a node that can encrypt nothing tells nothing"
    with pytest.raises(RemoteError, match="no WireGuard"):
        await world.bus.request("ces.v1.rpc.agent.n.rotate-key", b"")
    world.network.keys = LinkKeys(keys=["A" * 43 + "="], port=51872)
    world.network.links_changed.set()
    told = LinkReport(node="n", links=[], encryption=world.network.keys)
    await world.until(lambda: told in world.said["links"])
    await world.bus.request("ces.v1.rpc.agent.n.rotate-key", b"")
    assert world.network.rotations == 1


async def test_a_lent_device_is_given_back_and_lent_again_by_the_owners_word(world: World) -> None:
    def told() -> list[bool]:
        return [reclaimed for reclaimed, _ in groupby(beat.reclaimed for beat in world.beats)]

    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start(heartbeat_s=3600, lent=True)
    await world.until(lambda: told() == [True])
    assert world.states() == {}, "it has not been quiet yet"
    await world.bus.request("ces.v1.rpc.agent.n.lend", b"")
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.until(lambda: told() == [True, False])
    await world.bus.request("ces.v1.rpc.agent.n.reclaim", b"")
    await world.until(lambda: told() == [True, False, True])
    await world.until(lambda: world.states() == {"a.1": "exited"})
    await world.until(lambda: [each.reclaimed for each in world.said["status"][-1].workers] == [True])


async def test_a_reclaim_is_told_before_anything_is_measured(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring = asyncio.Event()

    async def hangs(_: FakeNetwork) -> Any:
        measuring.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(FakeNetwork, "usage", hangs)
    await world.start(heartbeat_s=3600, lent=True)
    await measuring.wait()
    await world.bus.request("ces.v1.rpc.agent.n.lend", b"")
    await world.until(lambda: [beat.reclaimed for beat in world.beats] == [False])
    await world.bus.request("ces.v1.rpc.agent.n.reclaim", b"")
    await world.until(lambda: [beat.reclaimed for beat in world.beats] == [False, True])


async def test_a_device_without_an_owner_is_not_given_back(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    with pytest.raises(RemoteError, match="is not lent"):
        await world.bus.request("ces.v1.rpc.agent.n.reclaim", b"")
    await world.beats_more()
    assert not any(beat.reclaimed for beat in world.beats)
    assert world.states() == {"a.1": "running"}


async def test_measurements_that_fail_keep_no_heartbeat_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away() -> Any:
        raise RuntimeUnavailable("the engine restarts")

    async def refused() -> Any:
        raise DataPlaneError("no such device")

    async def hangs() -> Any:
        await asyncio.Event().wait()

    agent = await world.start()
    for runtime_usage, network_usage in ((away, refused), (hangs, hangs)):
        monkeypatch.setattr(world.runtime, "usage", runtime_usage)
        monkeypatch.setattr(world.network, "usage", network_usage)
        await world.beats_more()
        assert (world.beats[-1].workers, world.beats[-1].links) == ([], [])
        assert agent.missing() is None


async def test_progress_is_passed_on(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.runtime.write("a", '{"progress": {"round": 1}}\n{"progress": {"x": "\\ud800"}}\n' + '{"a":' * 3000 + "\n")
    world.runtime.write("a", '{"progress": {"round": 2, "loss": NaN}}\n')
    await world.until(lambda: bool(world.said["progress"]))
    last: Progress = world.said["progress"][-1]
    assert (last.node, last.allocation, last.job, last.task) == ("n", "a", "j", "t-a")
    assert last.data["round"] == 2


async def test_logs_are_answered(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.runtime.write("a", "hello\n")
    subject = subjects.agent_rpc("n", "logs")
    answer = LogAnswer.model_validate_json(await world.bus.request(subject, LogQuery(allocation="a").encode()))
    assert (answer.found, answer.text, answer.complete) == (True, "hello\n", False)
    for wrong in (LogQuery(allocation="../../etc/passwd").encode(), b"rubbish", b'{"allocation": "a", "offset": -5}'):
        with pytest.raises(RemoteError):
            await world.bus.request(subject, wrong)


async def test_a_runtime_outage_is_survived(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.runtime.available = False
    await world.want(compute(worker("a", 2), generation=2))
    await world.beats_more()
    assert world.states() == {"a.1": "running"}
    world.runtime.available = True
    await world.until(lambda: world.states() == {"a.2": "running"})


class RefusingBus(MemoryBus):
    """Refuses what is named in ``refused``, and counts connections and what is listened to."""

    def __init__(self, broker: MemoryBroker, refused: list[str]) -> None:
        super().__init__(broker)
        self.refused = refused
        self.connections = 0
        self.open = 0

    async def connect(self, *, deadline_s: float | None = None) -> None:
        self.connections += 1
        await super().connect(deadline_s=deadline_s)

    async def kv_subscribe(self, node: str, handler: Any) -> Any:
        return self._counted("kv_subscribe", await super().kv_subscribe(node, handler))

    async def serve(self, subject: str, handler: Any, *, queue: str | None = None) -> Any:
        return self._counted("serve", await super().serve(subject, handler, queue=queue))

    def _counted(self, what: str, subscription: Any) -> Any:
        if what in self.refused:
            self.refused.remove(what)
            raise AccessRefused(what)
        self.open += 1
        close = subscription.close

        async def closed() -> None:
            self.open -= 1
            await close()

        subscription.close = closed
        return subscription


async def test_a_bus_that_refuses_once_costs_no_connection_and_leaves_nobody_listening(world: World) -> None:
    bus = RefusingBus(world.broker, ["kv_subscribe", "serve"])
    agent = await world.start(bus)
    world.tasks.pop().cancel()  # before it began: it is called here
    for _ in range(2):
        with pytest.raises(AccessRefused):
            await agent.communicate()
        assert (bus.connections, bus.open) == (1, 0)
    world.tasks.append(asyncio.create_task(agent.communicate()))
    await world.until(lambda: agent.missing() is None)
    assert (bus.connections, bus.open) == (1, 7)


async def test_how_its_workers_are_confined_is_told(world: World) -> None:
    await world.start()
    await world.until(lambda: bool(world.said["confinement"]))
    assert world.said["confinement"][0] == ConfinementReport(node="n", confinement=APART)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What measures is done at once, and finds the same on every machine."""
    line = json.dumps({"kind": "integer", "rates": [1.0, 1.0], "source": "s"})
    monkeypatch.setattr(service, "command", lambda _: (sys.executable, "-c", f"print({line!r})"))
    monkeypatch.setattr(service, "LOOK_S", BEAT_S)


async def test_how_fast_its_node_is_is_told_after_it_has_joined(world: World, measured: None) -> None:
    world.there = False
    await world.start(measure=True)
    await world.until(lambda: len(world.beats) > 3)
    assert not (world.folder / "scores.json").exists()
    world.there = True
    await world.until(lambda: bool(world.said["scores"]))
    assert [each.kind for each in world.said["scores"][0].measurements] == ["integer"]


async def test_a_node_on_which_workers_run_is_not_measured(world: World, measured: None) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start(measure=True)
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.beats_more()
    with pytest.raises(RemoteError, match="workers run there"):
        await world.bus.request("ces.v1.rpc.agent.n.measure", b"")
    assert world.said["scores"] == []
    await world.want(compute(generation=2))
    await world.until(lambda: bool(world.said["scores"]))


async def test_a_device_that_its_owner_has_is_not_measured(world: World, measured: None) -> None:
    await world.start(lent=True, measure=True)
    await world.beats_more()
    with pytest.raises(RemoteError, match="its owner has the device"):
        await world.bus.request("ces.v1.rpc.agent.n.measure", b"")
    await world.bus.request("ces.v1.rpc.agent.n.lend", b"")
    await world.until(lambda: bool(world.said["scores"]))


async def test_a_node_that_is_not_measured_says_so_when_asked(world: World) -> None:
    await world.start()
    await world.until(lambda: len(world.beats) > 0)
    with pytest.raises(RemoteError, match="CES_MEASURE=false"):
        await world.bus.request("ces.v1.rpc.agent.n.measure", b"")
