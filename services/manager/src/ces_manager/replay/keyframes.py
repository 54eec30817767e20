"""Keyframes: the whole cluster, kept from time to time beside the events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import func, select

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.history_tables import KeyframeRow
from ces_common.db.outbox import latest_event
from ces_common.db.tables import EventRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_manager.database import Database
from ces_manager.duties import HISTORY, Duties
from ces_manager.jobs.next_size import next_allocations, next_reservations
from ces_manager.jobs.transitions import allocations_of
from ces_manager.live.look import Looker
from ces_manager.live.picture import Record
from ces_manager.measurements import Measurements
from ces_manager.replay.events import Network
from ces_manager.replay.past import Facts, Given, Past, PastJob, Place, Size, packed

log = structlog.get_logger()
EVENTS: Final = 2000  # after which another one is kept, so that a replay is soon done
LONGEST: Final = timedelta(hours=1)
LEAST: Final = timedelta(seconds=10)
LOOK_S: Final = 1.0
TOPOLOGY = "ces.v1.topology.changed"  # the event tells numbers only: what is there now stands in the next keyframe
_DERIVED = {f"{resource}_{which}" for resource in ("cpu", "memory", "gpu") for which in ("allocated", "used")}
_OF_THE_MOMENT = _DERIVED | {"reserved", "used", "drops", "errors", "round_trip_s", "warning", "nodes"}
_HELD = select(ReservationRow).where(ReservationRow.held)


@dataclass(frozen=True, slots=True)
class Kept:
    """The last keyframe."""

    sequence: int
    time: datetime


def last_kept(tx: ReadTx) -> Kept | None:
    query = select(KeyframeRow.sequence, KeyframeRow.time).order_by(KeyframeRow.sequence.desc()).limit(1)
    row = tx.session.execute(query).one_or_none()
    return None if row is None else Kept(row.sequence, row.time)


def is_due(tx: ReadTx, kept: Kept | None, now: datetime) -> bool:
    """Whether enough has happened since the last keyframe, or something that events do not tell whole."""
    if kept is None:
        return True
    fresh = latest_event(tx) - kept.sequence
    age = abs(now - kept.time)
    if fresh <= 0 or age < LEAST:
        return False
    if fresh >= EVENTS or age >= LONGEST:
        return True
    rewired = select(EventRow.sequence).where(EventRow.sequence > kept.sequence, EventRow.type == TOPOLOGY).limit(1)
    return tx.session.execute(rewired).first() is not None


def past_of(tx: ReadTx, now: datetime) -> Past:
    """The cluster as it is."""
    picture = Looker(Measurements()).look(tx, now)
    jobs = {name: PastJob(_plain(facts)) for name, facts in picture.jobs.items()}
    rows = tx.session.scalars(select(JobRow).where(JobRow.id.in_(jobs))).all() if jobs else ()
    allocations = allocations_of(tx, rows)
    for row in rows:
        job = jobs[row.id]
        job.now.places = {
            each.id: Place(each.task, each.node, each.state.value, each.cpu, each.memory, each.gpu)
            for each in allocations[row.id]
        }
        if row.next_size is not None:
            job.coming = _coming(tx, row)
        if row.waiting is not None:
            told = None if row.queue_status is None else row.queue_status.model_dump(mode="json", exclude_none=True)
            job.waiting = {"reason": row.waiting.model_dump(mode="json", exclude_none=True), "queue_status": told}
    for flow in tx.session.scalars(_HELD):
        job = jobs[flow.job]
        if flow.attempt == job.facts["attempt"]:
            job.now.flows[flow.number] = given_of(flow)
    return Past(
        sequence=latest_event(tx),
        at=picture.at,
        nodes={name: _plain(facts) for name, facts in picture.nodes.items()},
        links={key: _plain(facts) for key, facts in picture.links.items()},
        media=dict(picture.media),
        jobs=jobs,
    )


def network_of(past: Past) -> Network:
    return Network(past.nodes, past.links, past.media)


def given_of(row: ReservationRow) -> Given:
    return Given(row.src, row.dst, row.min, row.max, row.rate, row.path)


def _coming(tx: ReadTx, row: JobRow) -> Size:
    """In full, where its rows hold what goes beyond the present size."""
    tasks = row.spec.at_size(row.next_size or 0).expand_tasks()
    places = {}
    for each in next_allocations(tx, row):
        task = tasks[each.rank]
        places[each.id] = Place(each.task, each.node, each.state.value, task.cpu, task.memory, task.gpu)
    return Size(places, {flow.number: given_of(flow) for flow in next_reservations(tx, row)})


def _plain(facts: Record) -> Facts:
    """Without what is derived, and without what is not known."""
    return {name: value for name, value in facts.items() if value is not None and name not in _OF_THE_MOMENT}


async def keep_repeatedly(database: Database, duties: Duties) -> None:
    """Keep a keyframe whenever one is due, as long as this manager has the duty."""
    kept: Kept | None = None
    while True:
        try:
            if duties.holds(HISTORY):
                kept = await keep_if_due(database, kept)
            else:
                kept = None
        except UNAVAILABLE as error:
            log.warning("no keyframe is kept: the database does not answer", error=cause_of(error))
        await asyncio.sleep(LOOK_S)


async def keep_if_due(database: Database, kept: Kept | None) -> Kept | None:
    """``kept``: the last one, as far as it is known. Returns the last one."""

    def look(tx: ReadTx) -> tuple[Kept | None, KeyframeRow | None]:
        now = database.clock.now()
        last = last_kept(tx) if kept is None else kept
        if not is_due(tx, last, now):
            return last, None
        past = past_of(tx, now)
        return last, KeyframeRow(sequence=past.sequence, time=now, body=packed(past))

    last, row = await database.tell(look)
    if row is None or (last is not None and last.sequence >= row.sequence):
        return last

    def store() -> None:
        with database.uow.bare_write() as session:
            session.merge(row)

    await database.in_writer(store)
    return Kept(row.sequence, row.time)


def oldest_kept(tx: ReadTx) -> Kept | None:
    query = select(KeyframeRow.sequence, KeyframeRow.time).order_by(KeyframeRow.sequence).limit(1)
    row = tx.session.execute(query).one_or_none()
    return None if row is None else Kept(row.sequence, row.time)


def keyframe_at(tx: ReadTx, sequence: int, *, after: bool = False) -> bytes | None:
    """The last keyframe at or before an event, or the first one at or after it."""
    if after:
        nearest = select(func.min(KeyframeRow.sequence)).where(KeyframeRow.sequence >= sequence)
    else:
        nearest = select(func.max(KeyframeRow.sequence)).where(KeyframeRow.sequence <= sequence)
    return tx.session.scalar(select(KeyframeRow.body).where(KeyframeRow.sequence == nearest.scalar_subquery()))
