"""How often nodes and links were there: seen every ten seconds and written down every five minutes, without the version
lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import structlog
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ces_common.db import UNAVAILABLE, ReadTx, cause_of
from ces_common.db.availability_tables import LinkAvailabilityRow, NodeAvailabilityRow
from ces_common.db.tables import LeaseRow, LinkRow, NodeRow
from ces_manager.availability.evidence import Evidence
from ces_manager.availability.watch import Hop, NodeSeen, Watch
from ces_manager.database import Database
from ces_manager.duties import TIME, Duties
from ces_manager.timeouts import Timeouts

log = structlog.get_logger()
LOOK_S: Final = 10.0
WRITE_S: Final = 300.0
AT_ONCE: Final = 500  # rows in one transaction
Hearing = Callable[[], float]
Age = Callable[[str, float], float]
_NODES = select(NodeRow.name, NodeRow.cordoned, LeaseRow.boot, LeaseRow.machine).join(
    LeaseRow, LeaseRow.node == NodeRow.name
)
_LINKS = select(LinkRow.src, LinkRow.dst, LinkRow.state).join(NodeRow, NodeRow.name == LinkRow.src)
_GONE = ~select(LinkRow.src).where(
    LinkRow.src == LinkAvailabilityRow.src, LinkRow.dst == LinkAvailabilityRow.dst
).exists()  # fmt: skip


async def learn_repeatedly(database: Database, hearing: Hearing, age: Age, timeouts: Timeouts, duties: Duties) -> None:
    """Learns until it is cancelled. ``hearing``, ``age``: of the failure detector. Of several managers one learns; what
    it has not written down when another takes over is lost, of times away as of times there."""
    watch, written = _new_watch(timeouts), database.clock.steady()
    while True:
        await asyncio.sleep(LOOK_S)
        if not duties.holds(TIME):
            watch, written = _new_watch(timeouts), database.clock.steady()
            continue
        try:
            await database.read(partial(look, watch=watch, hearing=hearing, age=age))
            if database.clock.steady() - written >= WRITE_S:
                written = database.clock.steady()
                await write_down(database, watch)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))


def _new_watch(timeouts: Timeouts) -> Watch:
    return Watch(timeouts.unreachable_after_s, timeouts.lease_s)


def look(tx: ReadTx, watch: Watch, hearing: Hearing, age: Age) -> None:
    """At all nodes that were ever heard, and all links that their sources watch."""
    now = hearing()
    nodes = {
        row.name: NodeSeen(age(row.name, now), row.boot, row.machine, row.cordoned)
        for row in tx.session.execute(_NODES)
        if row.boot
    }
    links = tx.session.execute(_LINKS.where(NodeRow.network != "none"))
    watch.look(nodes, {(row.src, row.dst): row.state == "up" for row in links}, now)


async def write_down(database: Database, watch: Watch) -> None:
    """What was learned since this was last called. Of a link that has left the topology all is forgotten."""
    learned = list(watch.take().items())

    def write(some: Sequence[tuple[str | Hop, Evidence]]) -> None:
        with database.uow.bare_write() as session:
            _add(session, dict(some))

    def forget() -> None:
        with database.uow.bare_write() as session:
            session.execute(delete(LinkAvailabilityRow).where(_GONE), execution_options={"synchronize_session": False})

    for start in range(0, len(learned), AT_ONCE):
        try:
            await database.in_writer(partial(write, learned[start : start + AT_ONCE]))
        except IntegrityError as error:  # a node was forgotten meanwhile
            log.info("what was learned of some nodes and links is lost", error=cause_of(error))
    await database.in_writer(forget)


def _add(session: Session, learned: Mapping[str | Hop, Evidence]) -> None:
    nodes = {name: more for name, more in learned.items() if isinstance(name, str)}
    links = {hop: more for hop, more in learned.items() if not isinstance(hop, str)}
    there = set(session.scalars(select(NodeRow.name).where(NodeRow.name.in_(list(nodes)))))
    of_nodes = select(NodeAvailabilityRow).where(NodeAvailabilityRow.node.in_(there))
    known = {row.node: row for row in session.scalars(of_nodes)}
    for name in sorted(there):
        row = known.get(name) or NodeAvailabilityRow(node=name, up_s=0.0, down_s=0.0)
        session.add(row)
        _put(row, nodes[name])
    for hop, more in links.items():
        link = session.get(LinkAvailabilityRow, hop) or LinkAvailabilityRow(
            src=hop[0], dst=hop[1], up_s=0.0, down_s=0.0
        )
        session.add(link)
        _put(link, more)
    session.flush()


def _put(row: NodeAvailabilityRow | LinkAvailabilityRow, more: Evidence) -> None:
    after = Evidence(row.up_s, row.down_s).with_more(more)
    row.up_s, row.down_s, row.least = after.up_s, after.down_s, after.least()
