"""Readings of malleable jobs' speed, noted as the manager does."""

from __future__ import annotations

from manager_world import World

from ces_common.messages.reports import Progress
from ces_manager.jobs.speed_notes import has_news, note_speeds
from ces_manager.speed_meter import Reading


def reading(
    world: World, job: str, step: int = 100, rate: float | None = 5.0, span_s: float = 10.0, incarnation: int = 1
) -> Reading:
    """Of the job's first task."""
    return Reading(world.job(job).allocations[0].id, incarnation, step, rate, span_s)


def tells(world: World, job: str, step: int, incarnation: int = 1) -> None:
    """The manager hears of a step of the job's first task."""
    first = world.job(job).allocations[0]
    said = {"incarnation": incarnation, "seen_s": world.steady, "data": {"step": step}}
    progress = {"node": first.node, "allocation": first.id, "job": job, "task": first.task} | said
    world.meter.heard(Progress.model_validate(progress), world.steady)


def note(world: World, *readings: Reading) -> None:
    """As the service does: look first, then write."""
    with world.uow.read() as tx:
        news = has_news(tx, readings, world.now)
    if news:
        world.write(lambda tx: note_speeds(tx, readings))


def kept(world: World, job: str) -> tuple[int, dict[int, float]]:
    """The last step, and the speed at each size."""
    speeds = world.job(job).speeds
    assert speeds is not None
    return speeds.step, {size: each.rate for size, each in speeds.sizes.items()}
