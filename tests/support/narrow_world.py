"""Three nodes with room for one job, and a job that was suspended on them for a more urgent one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manager_world import World, ring, sqlite_url
from meshed_world import meshed_world

from ces_common.db.outbox import ALL, events_after
from ces_common.jobfile import JobFile
from ces_common.messages.events import parse_event
from ces_manager.plans.residual import residual_of

NODES = ["a", "b", "c"]
HOPS = {(src, dst) for src in NODES for dst in NODES if src != dst}


def low(name: str = "low", **more: object) -> JobFile:
    return ring(name, **{"priority": 10, "preemption": "suspend"} | more)


@contextmanager
def narrow_world(folder: Path) -> Iterator[World]:
    """What happened in it is audited in the end."""
    with meshed_world(sqlite_url(folder), *NODES, bandwidth="20Mbit", cpu=800) as made:
        yield made


def suspended_in(world: World, **more: object) -> str:
    """A job that was suspended for another, which waits."""
    job, urgent = world.submit(low(**more)), world.submit(ring("urgent", priority=90))
    world.run(job, NODES)
    assert world.preempt(urgent, job) is None
    return job


def left(world: World) -> list[tuple[int, int, int]]:
    """CPU and memory of each node, and bandwidth of a link from it."""
    with world.uow.read() as tx:
        residual = residual_of(tx, NODES, HOPS)
    return [
        (residual.nodes[name].cpu, residual.nodes[name].memory, residual.links[name, NODES[i - 2]].bandwidth)
        for i, name in enumerate(NODES)
    ]


def urgent(world: World) -> str:
    return next(job.id for job in world.snapshot().jobs if job.name == "urgent")


def told(world: World, job: str | None) -> list[object]:
    """What the events said of a job; None: those of no job's stream."""
    with world.uow.read() as tx:
        return [parse_event(event.body.encode()).data for event in events_after(tx, 0, ALL, 10**5) if event.job == job]
