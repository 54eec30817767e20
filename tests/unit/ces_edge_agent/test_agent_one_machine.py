"""An agent whose node's lease another machine holds: nothing runs here, and nothing is said of what does."""

from __future__ import annotations

import pytest
from agent_parts import compute, network, worker
from agent_world import LEASE_S, World

from ces_edge_agent.deadline import deadline_file, read_deadline
from ces_edge_agent.lease import Lease


@pytest.mark.parametrize("disconnect", ["stop", "5m", "keep"])
async def test_it_ends_all_workers_at_once_and_says_nothing_more_of_them(world: World, disconnect: str) -> None:
    await world.want(network("a", generation=1), compute(worker("a", disconnect=disconnect), generation=1))
    agent = await world.start()
    await world.until(lambda: world.states() == {"a.1": "running"} and world.said["status"] != [])
    world.taken = True
    await world.until(lambda: world.states() == {"a.1": "exited"})
    assert agent.missing() == "the lease, which another machine or an earlier boot has"
    await world.beats_more()
    world.said["status"].clear()
    world.said["applied"].clear()
    await world.beats_more(5)
    assert (world.said["status"], world.said["applied"]) == ([], [])


async def test_its_workers_end_also_without_it_and_a_restart_brings_no_lease_back(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    agent = await world.start()
    await world.until(lambda: agent.missing() is None)
    world.taken = True
    await world.until(lambda: not agent._lease.holds())
    deadline = read_deadline(deadline_file(world.folder))
    assert deadline is not None
    assert deadline.at == 0
    await world.stop()
    assert not Lease(world.folder, world.time.clocks()).holds()


async def test_one_that_is_refused_from_the_start_has_said_nothing_and_started_nothing(world: World) -> None:
    """A copy, or this machine after a reboot: it waits until the lease passes on to it."""
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    world.taken = True
    agent = await world.start()
    await world.beats_more(5)
    assert world.states() == {}
    assert (world.said["status"], world.said["applied"]) == ([], [])
    world.taken = False
    await world.until(lambda: world.states() == {"a.1": "running"} and agent.missing() is None)
    await world.until(lambda: any(each.workers for each in world.said["status"]))
    assert agent._lease.remaining() > LEASE_S / 2


async def test_heartbeats_name_the_boot_of_the_machine_across_starts_of_the_agent(world: World) -> None:
    for _ in range(2):
        await world.start()
        await world.beats_more()
        await world.stop()
    assert {each.machine for each in world.beats} == {"first"}
    assert len({each.boot for each in world.beats}) == 2
    world.time.reboot(60)
    await world.start()
    await world.until(lambda: world.beats[-1].machine == "first+")


async def test_a_refusal_that_comes_late_takes_back_no_later_grant(world: World) -> None:
    await world.want(network("a", generation=1), compute(worker("a"), generation=1))
    agent = await world.start(heartbeat_s=3600)  # it asks once, and then when it is told to
    await world.until(lambda: world.states() == {"a.1": "running"})
    world.time.passes(5)
    await agent._ask_for_lease(world.time.steady)
    world.taken = True
    await agent._ask_for_lease(world.time.steady - 3)
    assert agent._lease.holds()
    assert agent.missing() is None
