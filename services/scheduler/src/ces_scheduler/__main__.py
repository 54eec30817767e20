"""python -m ces_scheduler"""

from __future__ import annotations

import asyncio
import sys

from ces_common.bus import Bus
from ces_common.connecting import bus_from
from ces_common.health import health_app, serve_http
from ces_common.service import run_loops, run_service
from ces_common.settings import ServiceSettings
from ces_core.errors import UnknownSolverError
from ces_core.solvers import DEFAULT, Solver, get_solver
from ces_scheduler.service import SERVICE, Scheduler


class SchedulerSettings(ServiceSettings):
    solver: str = DEFAULT  # one that `ces solvers` lists


async def run(settings: SchedulerSettings, solver: Solver, stop: asyncio.Event) -> None:
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
    settings = SchedulerSettings()
    try:
        solver = get_solver(settings.solver)
    except UnknownSolverError as error:
        print(f"CES_SOLVER: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    run_service(SERVICE, settings.log_level, lambda stop: run(settings, solver, stop))


if __name__ == "__main__":
    main()
