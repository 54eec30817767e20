"""What an agent does by its lease: what goes on without the manager, what ends, and when anything may start again."""

import asyncio

import pytest
from agent_parts import compute, network, worker
from agent_world import BEAT_S, LEASE_S, World

from ces_common.messages.desired import DesiredWorker
from ces_edge_agent.reconcilers.starts import VANISHED, VANISHED_EXIT


async def test_without_word_from_the_manager_workers_stop_when_the_lease_has_run_out(world: World) -> None:
    await world.want(
        network("a", "b", generation=1), compute(worker("a"), worker("b", disconnect="keep"), generation=1)
    )
    agent = await world.start()
    await world.until(lambda: world.states() == {"a.1": "running", "b.1": "running"})
    world.there = False
    await world.beats_more()
    world.time.passes(LEASE_S - 1)
    await world.beats_more()
    assert world.states() == {"a.1": "running", "b.1": "running"}
    world.time.passes(2)
    await world.until(lambda: world.states() == {"a.1": "exited", "b.1": "running"})
    assert agent.missing() == "word from the manager"
    world.there = True
    await world.until(lambda: agent.missing() is None)


async def test_a_restarted_agent_goes_on_without_its_master(world: World) -> None:
    await world.want(network("a", "b", generation=1), compute(worker("a"), worker("b", 2), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running", "b.2": "running"})
    await world.stop()
    world.there = False
    world.broker.bucket.clear()
    world.never_started("b.2")
    world.time.passes(10)
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running", "b.2": "running"})
    world.time.passes(25)
    await world.until(lambda: world.states() == {"a.1": "exited", "b.2": "exited"})


async def test_a_worker_that_is_gone_when_the_agent_starts_again_has_ended(world: World) -> None:
    """As after a reboot from which nothing but the agent's own folder came back."""
    await world.want(network("a", "b", generation=1), compute(worker("a"), worker("b", 2), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running", "b.2": "running"})
    await world.stop()
    del world.host.workers["b.2"]
    world.time.reboot(10)
    world.said["status"].clear()
    await world.start()
    await world.until(lambda: len(world.said["status"]) >= 3)
    told = {f"{each.allocation}.{each.incarnation}": each for each in world.said["status"][-1].workers}
    assert (told["b.2"].state, told["b.2"].exit_code, told["b.2"].reason) == ("exited", VANISHED_EXIT, VANISHED)
    assert world.states() == {"a.1": "running"}, "it is not started again"
    await world.want(compute(worker("a"), worker("b", 3), generation=2))
    await world.until(lambda: world.states() == {"a.1": "running", "b.3": "running"})


async def test_after_a_reboot_past_the_lease_nothing_starts_without_the_manager(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.stop()
    world.never_started()
    world.time.reboot(LEASE_S + 60)
    world.there = False
    await world.start()
    await world.beats_more()
    assert world.states() == {}
    world.there = True
    await world.until(lambda: world.states() == {"a.1": "running"})


async def test_after_the_lease_nothing_starts_by_what_was_desired_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.stop()
    world.never_started()
    world.time.passes(LEASE_S + 60)
    world.broker.bucket["n.compute"] = compute(generation=2).encode()
    started: list[str] = []
    agent = await world.start()
    start = world.runtime.start

    async def noted(worker: DesiredWorker) -> None:
        started.append(worker.key)
        await start(worker)

    monkeypatch.setattr(world.runtime, "start", noted)
    read = agent._read_desired

    async def slow_read() -> None:
        await asyncio.sleep(5 * BEAT_S)
        await read()

    monkeypatch.setattr(agent, "_read_desired", slow_read)
    await world.until(lambda: agent.missing() is None)
    await world.beats_more()
    assert started == []


async def test_after_the_lease_nothing_starts_while_the_spec_store_is_being_filled_again(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.stop()
    world.never_started()
    world.time.passes(LEASE_S + 60)
    world.broker.bucket.clear()
    agent = await world.start()
    await world.beats_more()
    await world.want(network("a", generation=2))
    await world.beats_more()
    assert world.states() == {}
    assert agent.missing() == "word from the manager"
    await world.want(compute(worker("a", 2), generation=2))
    await world.until(lambda: world.states() == {"a.2": "running"})


async def test_after_the_lease_nothing_starts_by_a_document_from_before_the_node_was_lost(world: World) -> None:
    """The manager has moved what the node ran, and both controllers have not yet said so."""
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.stop()
    world.never_started()
    world.time.passes(LEASE_S + 60)
    world.least_generation = 2
    agent = await world.start()
    await world.until(lambda: agent.missing() == "what compute-ctl wants it to run")
    fetches = world.fetches
    await world.beats_more()
    assert world.states() == {}
    assert not agent._lease.holds()
    assert agent.missing() == "what compute-ctl wants it to run"
    assert world.fetches == fetches, "it was read once, and what changes is heard"
    await world.want(compute(worker("b"), generation=2), network("b", generation=2))
    await world.until(lambda: world.states() == {"b.1": "running"})
    assert agent.missing() is None


async def test_a_node_that_knows_of_no_work_has_no_lease_before_its_controller_has_spoken(world: World) -> None:
    world.least_generation = 5
    agent = await world.start()
    await world.beats_more()
    assert not agent._lease.holds()
    await world.want(network(generation=5), compute(generation=5))
    await world.until(lambda: agent.missing() is None)


async def test_after_the_lease_nothing_starts_by_a_document_of_another_database(world: World) -> None:
    await world.want(network("a", generation=9), compute(worker("a"), generation=9))
    await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    await world.stop()
    world.never_started()
    world.time.passes(LEASE_S + 60)
    world.epoch, world.least_generation = "restored", 3
    await world.start()
    await world.beats_more()
    assert world.states() == {}


async def test_a_lease_that_holds_asks_for_no_newer_document(world: World) -> None:
    """Nothing of it can have been moved: the manager gives up no node whose lease may hold."""
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    agent = await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.least_generation = 2
    world.time.passes(LEASE_S / 2)
    await world.until(lambda: agent._lease.remaining() > LEASE_S * 0.9)
    assert world.states() == {"a.1": "running"}
