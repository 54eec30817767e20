"""What finished jobs took is written down, by their tenant, their name and the group of their tasks: twice a minute,
without the version lock, for nobody who follows the state is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.tables import AllocationRow, JobRow, NodeRow
from ces_common.db.work_tables import LearnedWorkRow
from ces_common.states import JOB_OVER
from ces_common.work import NodeSpeeds, learned, speeds_of
from ces_manager.database import Database
from ces_manager.duties import TIME, Duties
from ces_manager.work.groups import TaskPace, seen_work
from ces_manager.work_meter import Pace, WorkMeter

log = structlog.get_logger()
EVERY_S: Final = 30.0
AT_ONCE: Final = 500  # allocations in one transaction


async def note_work_repeatedly(database: Database, meter: WorkMeter, duties: Duties) -> None:
    """Of several managers, all of which hear all agents, one writes; the others forget what that one has written."""
    while True:
        await asyncio.sleep(EVERY_S)
        ended = meter.ended(database.clock.now())
        if not duties.holds(TIME):
            meter.forget(list(ended))
            continue
        try:
            await note_work(database, meter, ended)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))


async def note_work(database: Database, meter: WorkMeter, ended: Mapping[str, Pace]) -> None:
    """``ended``: allocations that no heartbeat tells of. Those whose job is not over yet are looked at again."""
    names = sorted(ended)
    for start in range(0, len(names), AT_ONCE):
        some = {name: ended[name] for name in names[start : start + AT_ONCE]}
        try:
            meter.forget(await database.in_writer(partial(_write, database, some)))
        except IntegrityError as error:  # another manager was here: the next time
            log.info("work could not be noted", error=cause_of(error))


def _write(database: Database, paces: Mapping[str, Pace]) -> list[str]:
    with database.uow.bare_write() as session:
        return write_down(session, paces, database.clock.now())


def write_down(session: Session, paces: Mapping[str, Pace], now: datetime) -> list[str]:
    """The allocations that are done with: their job is over, or there is none."""
    query = (
        select(AllocationRow, JobRow)
        .join(JobRow, JobRow.id == AllocationRow.job)
        .where(AllocationRow.id.in_(list(paces)))
    )
    found = session.execute(query).all()
    over = [(allocation, job) for allocation, job in found if job.state in JOB_OVER]
    speeds = _speeds(session, {allocation.node for allocation, _ in over})
    jobs = {job.id: job for _, job in over}
    for id, job in sorted(jobs.items()):
        tasks = [
            TaskPace(each.task, each.node, max(each.cpu, 1) / 1000, paces[each.id]) for each, of in over if of.id == id
        ]
        _note(session, job, tasks, speeds, now)
    session.flush()
    return sorted(paces.keys() - {allocation.id for allocation, job in found if job.state not in JOB_OVER})


def _note(
    session: Session, job: JobRow, tasks: Sequence[TaskPace], speeds: Mapping[str, NodeSpeeds], now: datetime
) -> None:
    for group, seen in seen_work(tasks).items():
        row = session.get(LearnedWorkRow, (job.tenant, job.name, group), with_for_update=True)
        known = None if row is None else row.learned
        for each in seen:
            if each.node in speeds and each.cpu.ms > 0:
                known = learned(known, job.id, each.cpu.ms, speeds[each.node])
        if known is None:
            continue
        if row is None:
            row = LearnedWorkRow(tenant=job.tenant, name=job.name, task_group=group)
            session.add(row)
        row.learned, row.learned_at = known, now


def _speeds(session: Session, nodes: set[str]) -> dict[str, NodeSpeeds]:
    """Of those that have been measured."""
    query = select(NodeRow.name, NodeRow.measured).where(NodeRow.name.in_(nodes), NodeRow.measured.is_not(None))
    told = {row.name: speeds_of(row.measured.measurements) for row in session.execute(query) if row.measured}
    return {node: each for node, each in told.items() if each is not None}
