"""python -m ces_compute_ctl"""

from __future__ import annotations

import asyncio

from ces_common.follower import follow
from ces_common.service import run_service
from ces_common.settings import ServiceSettings
from ces_compute_ctl.service import SERVICE, ComputeController


async def run(settings: ServiceSettings, stop: asyncio.Event) -> None:
    await follow(SERVICE, settings, stop, lambda bus: ComputeController(bus, settings.resync_s))


if __name__ == "__main__":
    run_service(SERVICE, ServiceSettings, run)
