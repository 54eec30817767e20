"""python -m ces_network_ctl"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: run_service looks for garbage from then on

import asyncio

from ces_common.follower import follow
from ces_common.service import run_service
from ces_common.settings import ServiceSettings
from ces_network_ctl.announcements import SERVICE
from ces_network_ctl.service import NetworkController


class NetworkSettings(ServiceSettings):
    reserve: bool = True  # False: no flow is promised anything; for comparisons


async def run(settings: NetworkSettings, stop: asyncio.Event) -> None:
    await follow(
        SERVICE, settings, stop, lambda bus: NetworkController(bus, settings.resync_s, reserve=settings.reserve)
    )


if __name__ == "__main__":
    run_service(SERVICE, NetworkSettings, run)
