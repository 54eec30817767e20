"""Keyframes: the whole cluster, kept from time to time beside the events."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import func, select

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.history_tables import KeyframeRow
from ces_common.db.outbox import latest_event
from ces_common.db.tables import ClusterRow, EventRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_manager.database import Database
from ces_manager.duties import HISTORY, Duties
from ces_manager.jobs.next_size import next_allocations, next_reservations
from ces_manager.jobs.task_moves import all_beside, flows_beside
from ces_manager.jobs.transitions import allocations_of
from ces_manager.live.look import Looker
from ces_manager.live.picture import Record
from ces_manager.measurements import Measurements
from ces_manager.queue.status import with_holder_names
from ces_manager.replay.events import Network
from ces_manager.replay.past import Facts, Given, Past, PastJob, Place, Size, packed, unpacked

log = structlog.get_logger()
EVENTS: Final = 2000  # after which another one is kept, so that a replay is soon done
LONGEST: Final = timedelta(hours=1)
LEAST: Final = timedelta(seconds=10)
LOOK_S: Final = 1.0
TOPOLOGY = "ces.v1.topology.changed"  # the event tells numbers only: what is there now stands in the next keyframe
_DERIVED = {f"{resource}_{which}" for resource in ("cpu", "memory", "gpu") for which in ("allocated", "used")}
_OF_THE_MOMENT = _DERIVED | {"reserved", "flows", "used", "drops", "errors", "round_trip_s", "warning", "nodes"}
_UNTOLD = {"size", "tasks", "restarts"}  # of a job: no event tells them
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
    return fresh >= EVENTS or age >= LONGEST or rewired_since(tx, kept)


def rewired_since(tx: ReadTx, kept: Kept) -> bool:
    """Whether the topology was replaced after this keyframe."""
    rewired = select(EventRow.sequence).where(EventRow.sequence > kept.sequence, EventRow.type == TOPOLOGY).limit(1)
    return tx.session.execute(rewired).first() is not None


def past_of(tx: ReadTx, now: datetime) -> Past:
    """The cluster as it is."""
    picture = Looker(Measurements()).look(tx, now)
    jobs = {name: PastJob(_plain(facts, _UNTOLD)) for name, facts in picture.jobs.items()}
    rows = tx.session.scalars(select(JobRow).where(JobRow.id.in_(jobs))).all() if jobs else ()
    allocations = allocations_of(tx, rows)
    for row in rows:
        job = jobs[row.id]
        job.now.places = {
            each.id: Place(
                *(each.task, each.node, each.state.value, each.cpu, each.memory, each.gpu, each.cards, each.gpu_share)
            )
            for each in allocations[row.id]
        }
        if row.next_size is not None:
            job.coming = _coming(tx, row)
        if row.move is not None:
            job.beside = _beside(tx, row)
        if row.waiting is not None:
            statuses = with_holder_names(tx, [] if row.queue_status is None else [row.queue_status])
            told = [each.model_dump(mode="json", exclude_none=True) for each in statuses]
            reason = row.waiting.model_dump(mode="json", exclude_none=True)
            job.waiting = {"reason": reason, "queue_status": told[0] if told else None}
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
        places[each.id] = Place(each.task, each.node, each.state.value, task.cpu, task.memory, task.gpu, each.cards)
    return Size(places, {flow.number: given_of(flow) for flow in next_reservations(tx, row)})


def _beside(tx: ReadTx, row: JobRow) -> Size:
    places = {
        each.id: Place(each.task, each.node, each.state.value, each.cpu, each.memory, each.gpu)
        for each in all_beside(tx, row)
    }
    return Size(places, {flow.number: given_of(flow) for flow in flows_beside(tx, row.id)})


def _plain(facts: Record, untold: Collection[str] = ()) -> Facts:
    """Without what is derived, and without what is not known."""
    left_out = _OF_THE_MOMENT.union(untold)
    return {name: value for name, value in facts.items() if value is not None and name not in left_out}


async def keep_repeatedly(database: Database, duties: Duties) -> None:
    """Keep a keyframe whenever one is due, as long as this manager has the duty."""
    while True:
        try:
            if duties.holds(HISTORY):
                await keep_if_due(database)
        except UNAVAILABLE as error:
            log.warning("no keyframe is kept: the database does not answer", error=cause_of(error))
        await asyncio.sleep(LOOK_S)


async def keep_if_due(database: Database) -> Kept | None:
    """Returns the one that it keeps; None if none is due."""

    def look(tx: ReadTx) -> tuple[str, KeyframeRow] | None:
        now = database.clock.now()
        if not is_due(tx, last_kept(tx), now):
            return None
        past = past_of(tx, now)
        return tx.cluster().epoch, KeyframeRow(sequence=past.sequence, time=now, body=packed(past))

    found = await database.tell(look)
    if found is None:
        return None
    epoch, row = found

    def store() -> Kept | None:
        with database.uow.bare_write() as session:
            if session.scalar(select(ClusterRow.epoch)) != epoch:
                return None  # in another one the numbers of events are used again
            session.merge(row)
            return Kept(row.sequence, row.time)

    return await database.in_writer(store)


def oldest_kept(tx: ReadTx) -> Kept | None:
    query = select(KeyframeRow.sequence, KeyframeRow.time).order_by(KeyframeRow.sequence).limit(1)
    row = tx.session.execute(query).one_or_none()
    return None if row is None else Kept(row.sequence, row.time)


def kept_before(tx: ReadTx, sequence: int) -> int | None:
    """The number of the last keyframe at or before an event."""
    return tx.session.scalar(select(func.max(KeyframeRow.sequence)).where(KeyframeRow.sequence <= sequence))


def kept_after(tx: ReadTx, sequence: int) -> int | None:
    """The number of the first keyframe at or after an event."""
    return tx.session.scalar(select(func.min(KeyframeRow.sequence)).where(KeyframeRow.sequence >= sequence))


def past_in(tx: ReadTx, keyframe: int) -> Past:
    return unpacked(tx.session.scalars(select(KeyframeRow.body).where(KeyframeRow.sequence == keyframe)).one())
