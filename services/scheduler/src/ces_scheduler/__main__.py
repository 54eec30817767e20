"""python -m ces_scheduler"""

from __future__ import annotations

import asyncio

from ces_common.following import follow
from ces_common.service import BadSetup, run_service
from ces_common.settings import ServiceSettings
from ces_core.errors import UnknownSolverError
from ces_core.solvers import DEFAULT, get_solver
from ces_scheduler.service import SERVICE, Scheduler


class SchedulerSettings(ServiceSettings):
    solver: str = DEFAULT  # one that `ces solvers` lists


async def run(settings: SchedulerSettings, stop: asyncio.Event) -> None:
    try:
        solver = get_solver(settings.solver)
    except UnknownSolverError as error:
        raise BadSetup(f"CES_SOLVER: {error}") from None
    await follow(SERVICE, settings, stop, lambda bus: Scheduler(bus, solver, settings.resync_s))


if __name__ == "__main__":
    run_service(SERVICE, SchedulerSettings, run)
