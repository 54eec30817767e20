"""python -m ces_scheduler"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from ces_common.bus.port import Bus
from ces_common.following import follow
from ces_common.service import BadSetup, run_service
from ces_common.settings import ServiceSettings
from ces_core.errors import UnknownSolverError
from ces_core.solvers import DEFAULT
from ces_scheduler.choosing import choose
from ces_scheduler.service import REFILL_S, SERVICE, Scheduler


class SchedulerSettings(ServiceSettings):
    solver: str = DEFAULT  # one that `ces solvers` lists
    solve_time_limit_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.02  # 0: as the solver sees fit
    refill_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = REFILL_S  # least time between two re-fills
    paths: Annotated[int, Field(ge=0)] = 0  # new flows take one of so many shortest ones; 0: a hop-shortest one
    policy: Path | None = None  # None: the one that ships with the core

    @field_validator("policy", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return value or None


async def run(settings: SchedulerSettings, stop: asyncio.Event) -> None:
    try:
        choice = choose(settings.solver, settings.policy)
    except UnknownSolverError as error:
        raise BadSetup(f"CES_SOLVER: {error}") from None
    limit_s = settings.solve_time_limit_s or None

    def scheduler(bus: Bus) -> Scheduler:
        return Scheduler(
            bus,
            choice.solver,
            settings.resync_s,
            time_limit_s=limit_s,
            fallback=choice.fallback,
            refill_s=settings.refill_s,
            paths=settings.paths or None,
        )

    await follow(SERVICE, settings, stop, scheduler, remark=choice.fallback)


if __name__ == "__main__":
    run_service(SERVICE, SchedulerSettings, run)
