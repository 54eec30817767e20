"""Facts of the scheduler and of network-ctl wait in queues of their own: none holds up another."""

from __future__ import annotations

import asyncio
from pathlib import Path

from manager_world import World, full_mesh, ring, sqlite_url
from memory_bus import MemoryBroker, MemoryBus

from ces_common.db.outbox import ALL, events_after
from ces_common.messages.base import Message
from ces_common.messages.events import NetworkReady, PlanRefused, Reason, new_event
from ces_common.messages.plans import PreemptionProposed, Victim
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import Messaging

NODES = ["a", "b"]
BURST = 40
PATIENCE_S = 60.0


async def test_a_job_with_a_plan_goes_on_before_a_burst_of_others_has_its_plans_committed(tmp_path: Path) -> None:
    world = World(sqlite_url(tmp_path))
    world.add_nodes(*NODES, cpu=10**6, memory=2**45)
    world.put_topology(full_mesh(NODES, "10Gbit"))
    first, *others = [world.submit(ring(f"job-{i}", tasks=2)) for i in range(BURST + 1)]
    assert world.commit(world.propose(first, NODES)) is None
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    await bus.provision()

    async def tell(aggregate: str, kind: str, subject: str, data: Message) -> None:
        event = new_event("test", aggregate, kind, subject, data, world.now)
        await bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)

    for job in others:
        plan = world.propose(job, NODES)
        await tell("plan", "proposed", plan.plan, plan)
    await tell("network", "ready", first, NetworkReady(job=first, attempt=1))

    database = Database(world.uow)
    await Messaging(database, bus, world.timeouts, world.failure_detector, Measurements(), Broadcast()).start()
    async with asyncio.timeout(PATIENCE_S):
        while any(job.state is JobState.QUEUED for job in world.snapshot().jobs):
            await database.read(lambda tx: None)
    await bus.close()
    database.close()
    order = [(kind, job) for kind, job in told(world) if kind in ("job.starting", "job.planned")]
    planned_before = order.index(("job.starting", first)) - 1  # its own comes first
    assert planned_before < BURST / 4
    world.close()


async def test_a_plan_is_committed_before_a_flood_of_others_was_told_that_they_have_none(tmp_path: Path) -> None:
    world = World(sqlite_url(tmp_path))
    world.add_nodes(*NODES)
    world.put_topology(full_mesh(NODES))
    flood = [world.submit(ring(f"flood-{i}", tasks=2, tenant="flood")) for i in range(BURST)]
    first = world.submit(ring("first", tasks=2, tenant="other"))
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    await bus.provision()
    for job in flood:
        refused = PlanRefused(job=job, attempt=1, version=1, reason=Reason(code="cpu", text="too little"))
        event = new_event("test", "plan", "refused", job, refused, world.now)
        await bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
    plan = world.propose(first, NODES)
    event = new_event("test", "plan", "proposed", first, plan, world.now)
    await bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)

    database = Database(world.uow)
    await Messaging(database, bus, world.timeouts, world.failure_detector, Measurements(), Broadcast()).start()
    async with asyncio.timeout(PATIENCE_S):
        while len([kind for kind, _ in told(world) if kind in ("job.waiting", "job.planned")]) <= BURST:
            await database.read(lambda tx: None)
    await bus.close()
    database.close()
    order = [kind for kind, _ in told(world) if kind in ("job.waiting", "job.planned")]
    assert order.index("job.planned") < BURST / 4
    world.close()


async def test_a_preemption_is_committed_as_the_queue_file_allows(tmp_path: Path) -> None:
    world = World(sqlite_url(tmp_path))
    world.add_nodes(*NODES)
    world.put_topology(full_mesh(NODES))
    victim, job = world.submit(ring("low", tasks=2, priority=10)), world.submit(ring("urgent", tasks=2, priority=90))
    world.run(victim, NODES)
    preemption = PreemptionProposed(
        preemption="p",
        version=world.snapshot().version,
        job=job,
        attempt=1,
        victims=[Victim(job=victim, attempt=1, how="stop")],
    )
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    await bus.provision()
    database = Database(world.uow)
    await Messaging(
        database, bus, world.timeouts, world.failure_detector, Measurements(), Broadcast(), QueueFile(preemption=80)
    ).start()
    event = new_event("test", "preemption", "proposed", "p", preemption, world.now)
    await bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)
    async with asyncio.timeout(PATIENCE_S):
        while world.job(victim).state is JobState.RUNNING:
            await database.read(lambda tx: None)
    await bus.close()
    database.close()
    assert world.job(victim).state is JobState.RESCHEDULING
    world.close()


def told(world: World) -> list[tuple[str, str]]:
    """Type and job of every event, in order."""
    with world.uow.read() as tx:
        return [(event.type.removeprefix("ces.v1."), event.job or "") for event in events_after(tx, 0, ALL, 10**5)]
