"""python -m ces_scheduler"""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from ces_common.following import follow
from ces_common.service import BadSetup, run_service
from ces_common.settings import ServiceSettings
from ces_core.errors import UnknownSolverError
from ces_core.solvers import DEFAULT, get_solver
from ces_scheduler.service import SERVICE, Scheduler


class SchedulerSettings(ServiceSettings):
    solver: str = DEFAULT  # one that `ces solvers` lists
    solve_time_limit_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.02  # 0: as the solver sees fit


async def run(settings: SchedulerSettings, stop: asyncio.Event) -> None:
    try:
        solver = get_solver(settings.solver)
    except UnknownSolverError as error:
        raise BadSetup(f"CES_SOLVER: {error}") from None
    limit_s = settings.solve_time_limit_s or None
    await follow(SERVICE, settings, stop, lambda bus: Scheduler(bus, solver, settings.resync_s, time_limit_s=limit_s))


if __name__ == "__main__":
    run_service(SERVICE, SchedulerSettings, run)
