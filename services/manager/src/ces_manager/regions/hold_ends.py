"""Where they run: what is held for other regions ends by itself, on time."""

from __future__ import annotations

import asyncio

import structlog

from ces_common.db import UNAVAILABLE, cause_of
from ces_manager.database import Database
from ces_manager.duties import TIME, Duties
from ces_manager.regions import held

log = structlog.get_logger()
LOOK_S = 1.0  # a hold lasts longer: none ends unseen between two looks
AGAIN_S = 0.05  # after an end that is due by now


async def end_holds(database: Database, duties: Duties) -> None:
    """End holds when their time is over."""
    while True:
        wait_s = LOOK_S
        try:
            if duties.holds(TIME):
                wait_s = await end_due(database)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))
        await asyncio.sleep(wait_s)


async def end_due(database: Database) -> float:
    """Returns in how many seconds to look again."""
    first = await database.read(held.next_end)
    if first is not None and first <= database.clock.now():
        log.info("holds have ended", count=await database.write(held.end_holds))
        first = await database.read(held.next_end)
    if first is None:
        return LOOK_S
    return min(max((first - database.clock.now()).total_seconds(), AGAIN_S), LOOK_S)
