"""python -m ces_scheduler"""

from __future__ import annotations

import asyncio

from ces_common.bus import Bus
from ces_common.connecting import bus_from
from ces_common.health import health_app, serve_http
from ces_common.service import BadSetup, run_loops, run_service
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
    bus = bus_from(settings, SERVICE)
    scheduler = Scheduler(bus, solver, settings.resync_s)
    async with serve_http(health_app(scheduler.missing), settings.http_host, settings.http_port):
        try:
            await run_loops(stop, work(bus, scheduler))
        finally:
            await scheduler.reader.close()
            await bus.close()


async def work(bus: Bus, scheduler: Scheduler) -> None:
    await bus.connect()
    await scheduler.run()


def main() -> None:
    run_service(SERVICE, SchedulerSettings, run)


if __name__ == "__main__":
    main()
