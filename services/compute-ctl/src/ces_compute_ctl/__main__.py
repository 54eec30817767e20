"""python -m ces_compute_ctl"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: run_service looks for garbage from then on

import asyncio

from ces_common.follower import follow
from ces_common.service import run_service
from ces_common.settings import ServiceSettings
from ces_compute_ctl.service import SERVICE, ComputeController


async def run(settings: ServiceSettings, stop: asyncio.Event) -> None:
    await follow(SERVICE, settings, stop, lambda bus: ComputeController(bus, settings.resync_s))


if __name__ == "__main__":
    run_service(SERVICE, ServiceSettings, run)
