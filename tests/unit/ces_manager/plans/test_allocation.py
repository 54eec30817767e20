"""Addresses and ports of a committed plan."""

from __future__ import annotations

from manager_world import World, ring

from ces_common.db import WriteTx
from ces_manager.nodes import rows

NODES = ["a", "b", "c"]


def all_addresses_have_gone_round(tx: WriteTx) -> None:
    for node in NODES:
        rows.node_row(tx, node).last_host = 0


def test_the_address_of_a_worker_that_is_done_stays_its_own_while_its_job_has_a_network(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=0)
    world.write(all_addresses_have_gone_round)
    other = world.submit(ring("other"))
    assert world.commit(world.propose(other, NODES)) is None
    addresses = [allocation.address for each in (job, other) for allocation in world.job(each).allocations]
    assert len(set(addresses)) == 6


def test_workers_without_addresses_of_their_own_get_ports(world: World) -> None:
    world.add_nodes("p", "q", network="none")
    for _ in range(2):
        world.run(world.submit(ring(tasks=2, flows={})), ["p", "q"])
    ports = [(a.address, a.port) for job in world.snapshot().jobs for a in job.allocations]
    assert sorted(ports) == [("127.0.0.1", 20000 + i) for i in range(4)]
