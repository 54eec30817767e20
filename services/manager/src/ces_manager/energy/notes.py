"""What agents told of energy, written down: twice a minute, some hundred rows in one transaction, without the version
lock, for nobody who follows the state is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.energy_tables import AllocationEnergyRow, NodeEnergyRow
from ces_common.db.tables import AllocationRow, NodeRow
from ces_manager.database import Database
from ces_manager.duties import TIME, Duties
from ces_manager.energy.counting import Counted, NodeCount, count
from ces_manager.energy_book import EnergyBook, Told
from ces_manager.text import storable

log = structlog.get_logger()
EVERY_S: Final = 30.0
AT_ONCE: Final = 200  # nodes
ROWS_AT_ONCE: Final = 1000  # of allocations, but for one node's alone
LONGEST_METER: Final = 16


async def note_energy_repeatedly(database: Database, book: EnergyBook, duties: Duties) -> None:
    """Of several managers, all of which hear all heartbeats, one writes."""
    while True:
        await asyncio.sleep(EVERY_S)
        if not duties.holds(TIME):
            continue
        try:
            await note_energy(database, book)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))


async def note_energy(database: Database, book: EnergyBook) -> None:
    waiting = book.waiting()
    for changed in batches(waiting, book.changed):
        some = {node: waiting[node] for node in changed}
        try:
            await database.in_writer(partial(_write, database, some, changed))
        except IntegrityError as error:  # another manager was here, or a node or job went: the next time
            log.info("energy could not be noted", error=cause_of(error))
            continue
        for node, told in some.items():
            book.wrote(node, told)


def batches(nodes: Iterable[str], changed: Callable[[str], set[str]]) -> Iterator[dict[str, set[str]]]:
    """What is written in one transaction each: node -> allocations of which it tells something new."""
    some, rows = dict[str, set[str]](), 0
    for node in nodes:
        names = changed(node)
        if some and (len(some) == AT_ONCE or rows + len(names) > ROWS_AT_ONCE):
            yield some
            some, rows = {}, 0
        some[node], rows = names, rows + len(names)
    if some:
        yield some


def _write(database: Database, told: Mapping[str, Sequence[Told]], changed: Mapping[str, set[str]]) -> None:
    with database.uow.bare_write() as session:
        write_down(session, told, changed, database.clock.now())


def write_down(
    session: Session, told: Mapping[str, Sequence[Told]], changed: Mapping[str, set[str]], now: datetime
) -> None:
    """``changed``: node -> allocations of which it tells something new. Whose node is not there, or whose allocation is
    another node's, is left out."""
    nodes = select(NodeRow.name, NodeRow.joined_at).where(NodeRow.name.in_(list(told)))
    joined = {row.name: row.joined_at for row in session.execute(nodes)}
    rows = (
        select(NodeEnergyRow).where(NodeEnergyRow.node.in_(list(joined))).order_by(NodeEnergyRow.node).with_for_update()
    )
    known = {row.node: row for row in session.scalars(rows)}
    own = _own(session, changed)
    parts = _parts(session, {name for names in own.values() for name in names})
    for node in sorted(joined):
        row = known.get(node)
        before = NodeCount(
            _counted(row), row.jobs_measured if row else 0, row.jobs_modelled if row else 0,
            {name: _counted(parts.get(name)) for name in own[node]},
        )  # fmt: skip
        since = joined[node] if row is None else row.counted_at
        after = count(before, told[node], own[node], (now - since).total_seconds())
        if row is None:
            row = NodeEnergyRow(node=node)
            session.add(row)
        _put(row, after.node)
        row.jobs_measured, row.jobs_modelled = after.jobs_measured, after.jobs_modelled
        row.meter, row.counted_at = storable(told[node][-1].report.meter, LONGEST_METER), now
        for name, each in after.allocations.items():
            part = parts.get(name)
            if part is None:
                part = AllocationEnergyRow(allocation=name)
                session.add(part)
            _put(part, each)
    session.flush()


def _own(session: Session, changed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Those allocations that are their node's."""
    ids = {name for names in changed.values() for name in names if name.isalnum()}  # others no database may take
    query = select(AllocationRow.id, AllocationRow.node).where(AllocationRow.id.in_(ids))
    nodes = {row.id: row.node for row in session.execute(query)} if ids else {}
    return {node: {name for name in names if nodes.get(name) == node} for node, names in changed.items()}


def _parts(session: Session, names: set[str]) -> dict[str, AllocationEnergyRow]:
    known, listed = {}, sorted(names)
    for start in range(0, len(listed), AT_ONCE):
        query = select(AllocationEnergyRow).where(AllocationEnergyRow.allocation.in_(listed[start : start + AT_ONCE]))
        known.update({row.allocation: row for row in session.scalars(query)})
    return known


def _counted(row: NodeEnergyRow | AllocationEnergyRow | None) -> Counted:
    return Counted() if row is None else Counted(row.boot, row.counted, row.measured, row.modelled)


def _put(row: NodeEnergyRow | AllocationEnergyRow, counted: Counted) -> None:
    row.boot, row.counted, row.measured, row.modelled = (
        counted.boot,
        counted.counted,
        counted.measured,
        counted.modelled,
    )
