"""python -m ces_network_ctl"""

from __future__ import annotations

import asyncio

from ces_common.bus import Bus
from ces_common.connecting import bus_from
from ces_common.health import health_app, serve_http
from ces_common.service import run_loops, run_service
from ces_common.settings import ServiceSettings
from ces_network_ctl.service import SERVICE, NetworkController


async def run(settings: ServiceSettings, stop: asyncio.Event) -> None:
    bus = bus_from(settings, SERVICE)
    controller = NetworkController(bus, settings.resync_s)
    async with serve_http(health_app(controller.missing), settings.http_host, settings.http_port):
        try:
            await run_loops(stop, work(bus, controller))
        finally:
            await controller.reader.close()
            await bus.close()


async def work(bus: Bus, controller: NetworkController) -> None:
    await bus.connect()
    await controller.run()


def main() -> None:
    run_service(SERVICE, ServiceSettings, run)


if __name__ == "__main__":
    main()
