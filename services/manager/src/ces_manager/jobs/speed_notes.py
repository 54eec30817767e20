"""What was measured of malleable jobs, kept with them: seldom, since all who follow the state are told of a change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import select
from sqlalchemy.orm import undefer

from ces_common.db import UNAVAILABLE, ReadTx, WriteTx, cause_of
from ces_common.db.tables import AllocationRow, JobRow
from ces_common.messages.speeds import MATERIAL, MOST_LOAD_S, JobSpeeds, SizeSpeed
from ces_common.states import AllocationState, JobState
from ces_manager.database import Database
from ces_manager.duties import TIME, Duties
from ces_manager.speed_meter import Reading, SpeedMeter

log = structlog.get_logger()
LOOK_S: Final = 2.0
LATE: Final = timedelta(seconds=1)  # that an agent's word may be


def noted(
    before: JobSpeeds | None,
    reading: Reading,
    attempt: int,
    size: int,
    total: int | None,
    now: datetime,
    since: datetime,
) -> JobSpeeds | None:
    """What is known of a job after a reading of its present start, at this size; None where nothing has changed by more
    than a twentieth. A new speed counts as much as all that was measured at that size before. Within a start no step is
    taken back; another start may go on from an older checkpoint. ``since``: when the job began to run."""
    goes_on = before is not None and (before.attempt, before.incarnation) == (attempt, reading.incarnation)
    sizes = {} if before is None else dict(before.sizes)
    known, step, material = sizes.get(size), reading.step, not goes_on
    if before is not None and goes_on:
        step = max(step, before.step)
        scale = before.step if total is None else total - before.step
        material = step - before.step > MATERIAL * max(0, scale)
    if reading.rate is not None:
        material |= known is None or abs(reading.rate - known.rate) > MATERIAL * known.rate
        rate = reading.rate if known is None else (known.rate + reading.rate) / 2
        sizes[size] = SizeSpeed(rate=rate, at=now)
    if not material:
        return None
    load_s = None if before is None else before.load_s
    if reading.begun_s is not None and not goes_on:
        load_s = min(max(0.0, (now - since).total_seconds() - reading.begun_s), MOST_LOAD_S)
    return JobSpeeds(step=step, attempt=attempt, incarnation=reading.incarnation, at=now, sizes=sizes, load_s=load_s)


def has_news(tx: ReadTx, readings: Sequence[Reading], now: datetime) -> bool:
    """Whether there is something to write down."""
    return next(_news(tx, readings, now), None) is not None


def note_speeds(tx: WriteTx, readings: Sequence[Reading]) -> None:
    """Write down what has changed. No event says so: it is read with the next look at the state."""
    for row, speeds in _news(tx, readings, tx.now):
        row.speeds, row.version = speeds, tx.version


def latest_speeds(tx: WriteTx, job: str, meter: SpeedMeter) -> JobSpeeds | None:
    """What is known of a running malleable job with the last step that it has told, however little that changes. None
    where that is nothing new."""
    query = select(JobRow, AllocationRow).join(
        AllocationRow, (AllocationRow.job == JobRow.id) & (AllocationRow.attempt == JobRow.attempt)
    )
    query = query.where(JobRow.id == job, AllocationRow.rank == 0).options(undefer(JobRow.speeds))
    found = tx.session.execute(query).one_or_none()
    if found is None:
        return None
    (row, first), known = found, found[0].speeds
    step, start = meter.step(first.node, first.id, first.incarnation), (row.attempt, first.incarnation)
    if known is None or step is None or ((known.attempt, known.incarnation) == start and step <= known.step):
        return None
    return known.model_copy(update={"step": step, "at": tx.now, "attempt": start[0], "incarnation": start[1]})


async def note_repeatedly(database: Database, meter: SpeedMeter, duties: Duties) -> None:
    """Of several managers, all of which hear all progress, one writes."""
    while True:
        await asyncio.sleep(LOOK_S)
        readings = meter.due(database.clock.steady())
        if not readings or not duties.holds(TIME):
            continue
        try:
            await _note(database, readings)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))


async def _note(database: Database, readings: Sequence[Reading]) -> None:
    if await database.read(lambda tx: has_news(tx, readings, database.clock.now())):
        await database.write(lambda tx: note_speeds(tx, readings))


def _news(tx: ReadTx, readings: Iterable[Reading], now: datetime) -> Iterator[tuple[JobRow, JobSpeeds]]:
    """Of running malleable jobs whose present first task it was that was read."""
    by_allocation = {each.allocation: each for each in readings}
    query = select(JobRow, AllocationRow).join(
        AllocationRow, (AllocationRow.job == JobRow.id) & (AllocationRow.attempt == JobRow.attempt)
    )
    query = query.where(
        AllocationRow.id.in_(by_allocation),
        AllocationRow.rank == 0,
        AllocationRow.state == AllocationState.RUNNING,
        JobRow.state == JobState.RUNNING,
        JobRow.size.is_not(None),
    )
    for row, allocation in tx.session.execute(query.options(undefer(JobRow.spec), undefer(JobRow.speeds))):
        reading = by_allocation[allocation.id]
        elastic = row.spec.elastic
        if row.size is None or elastic is None or allocation.incarnation != reading.incarnation:
            continue
        if now - row.state_since < timedelta(seconds=reading.span_s) + LATE:  # it was paused, or not all of it ran
            reading = replace(reading, rate=None)
        speeds = noted(row.speeds, reading, row.attempt, row.size, elastic.speed.total, now, row.state_since)
        if speeds is not None:
            yield row, speeds
