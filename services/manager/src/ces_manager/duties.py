"""Duties: what one manager at a time does for all, while several run side by side.

They save work, and no decision of correctness rests on their holder being alone: one that was held up may go on with a
duty for a moment after another has taken it over. The database holds no deadline. The holder counts a number up every
second, and the others take over once they have seen it stand still for long enough on their own steady clocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import structlog
from prometheus_client import Gauge
from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.tables import DutyRow
from ces_common.service import Hint
from ces_manager.database import Database
from ces_manager.unchanged import Unchanged

log = structlog.get_logger()
HELD = Gauge("ces_duty_held", "Whether this manager holds the duty", ["duty"])
RELAY = "relay"  # publishes events
TIME = "time"  # lets time have its effects: silent nodes, ended leases, missed deadlines
HISTORY = "history"  # drops what is old
PROBE = "probe"  # measures a link: held while one is measured, so that no probe measures another
STANDING = frozenset({RELAY, TIME, HISTORY})
RENEW_S = 1.0
STANDS_STILL_S = 3.0  # without a sign of its holder: the duty is taken over
TURN_S = 0.25  # between two looks of one that waits for its turn
# Compare and set: of several that would take a duty over, one does.
_CHANGE = (
    update(DutyRow)
    .where(
        DutyRow.name == bindparam("the_name"),
        DutyRow.process == bindparam("seen_process"),
        DutyRow.renewed == bindparam("seen_renewed"),
    )
    .values(holder=bindparam("the_holder"), process=bindparam("the_process"), renewed=DutyRow.renewed + 1)
)


@dataclass(frozen=True, slots=True)
class Manager:
    """``place``: host and port, the same after a restart; ``process``: this start of it."""

    place: str
    process: str


NOBODY = Manager("", "")


@dataclass(frozen=True, slots=True)
class Duty:
    """As the database has it."""

    holder: Manager
    renewed: int


def next_holder(duty: Duty, me: Manager, *, wanted: bool, stands_s: float, former: str | None) -> Manager | None:
    """Who is to hold the duty now: ``me``, or nobody; None where it is left as it is. ``stands_s``: for how long its
    holder has given no sign. ``former``: the process that held it in this manager's place before. Pure."""
    mine = duty.holder.process == me.process
    if not wanted:
        return NOBODY if mine else None
    free = duty.holder == NOBODY or duty.holder.process == former or stands_s >= STANDS_STILL_S
    return me if mine or free else None


class Duties:
    """``able``: whether this manager can do its work; one that cannot leaves the standing duties to others. ``hint`` it
    when that may have changed."""

    def __init__(self, database: Database, place: str, able: Callable[[], bool] = lambda: True) -> None:
        self._database, self._able = database, able
        self.me = Manager(place, uuid4().hex)
        self.hint = Hint()
        self._looking = asyncio.Lock()
        self._wanted = set(STANDING)
        self._unchanged = Unchanged()
        self._former: Mapping[str, str] | None = None  # duty -> who held it in this place before
        self._held: frozenset[str] = frozenset()
        self._renewed_at = 0.0
        self._callbacks: list[Callable[[], None]] = []

    def holds(self, name: str) -> bool:
        """Whether this manager is to do it now. Not after it was held up: another may have taken over."""
        return name in self._held and self._database.clock.steady() - self._renewed_at < STANDS_STILL_S

    def on_taken(self, callback: Callable[[], None]) -> None:
        """Call back whenever this manager has taken over a duty."""
        self._callbacks.append(callback)

    async def run(self) -> None:
        while True:
            try:
                await self.step()
            except UNAVAILABLE as error:
                log.warning("duties could not be renewed", error=cause_of(error))
            await self.hint.wait(RENEW_S)

    async def step(self) -> None:
        """Renew what this manager holds, and take what nobody does."""
        async with self._looking:
            began = self._database.clock.steady()
            wanted = self._wanted if self._able() else self._wanted - STANDING
            self._note(await self._database.in_lease_writer(lambda: self._look(frozenset(wanted))), began)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Hold a duty for the time of the block, and wait until no other manager does. One block at a time."""
        self._wanted.add(name)
        try:
            await self.step()
            while not self.holds(name):
                await asyncio.sleep(TURN_S)
                await self.step()
            yield
        finally:
            self._wanted.discard(name)
            self.hint.set()

    async def give_up(self) -> None:
        """Leave all duties to others, who then need not wait."""
        self._wanted.clear()
        try:
            await self.step()
        except UNAVAILABLE as error:
            log.warning("duties are left to be taken over", error=cause_of(error))

    def _look(self, wanted: Collection[str]) -> frozenset[str]:
        """Returns what is held from now on."""
        with self._database.uow.read() as tx:
            duties = _duties(tx.session)
        stamps = {name: (duty.holder.process, duty.renewed) for name, duty in duties.items()}
        stands = self._unchanged.ages(stamps, self._database.clock.steady())
        if self._former is None:
            self._former = {n: duty.holder.process for n, duty in duties.items() if duty.holder.place == self.me.place}
        changes = []
        for name, duty in duties.items():  # in one order everywhere, so that no two managers wait for each other
            former = self._former.get(name)
            holder = next_holder(duty, self.me, wanted=name in wanted, stands_s=stands[name], former=former)
            if holder is not None:
                changes.append(
                    {
                        "the_name": name,
                        "seen_process": duty.holder.process,
                        "seen_renewed": duty.renewed,
                        "the_holder": holder.place,
                        "the_process": holder.process,
                    }
                )
        if changes:
            with self._database.uow.bare_write(urgent=True) as session:
                session.connection().execute(_CHANGE, changes)
                duties = _duties(session)
        return frozenset(name for name, duty in duties.items() if duty.holder == self.me)

    def _note(self, held: frozenset[str], began: float) -> None:
        """``began``: when the look did; nobody counts the silence from before that."""
        self._renewed_at = began
        taken, lost = held - self._held, self._held - held
        self._held = held
        for name in taken | lost:
            HELD.labels(name).set(name in held)
        if taken:
            log.info("duties taken", duties=sorted(taken))
            for callback in self._callbacks:
                callback()
        if lost & self._wanted:
            log.warning("duties left to others", duties=sorted(lost))


def _duties(session: Session) -> dict[str, Duty]:
    rows = session.execute(
        select(DutyRow.name, DutyRow.holder, DutyRow.process, DutyRow.renewed).order_by(DutyRow.name)
    )
    return {row.name: Duty(Manager(row.holder, row.process), row.renewed) for row in rows}
