"""python -m ces_federation"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: run_service looks for garbage from then on

import asyncio

from ces_common.bus.nats import NatsBus
from ces_common.connection import bus_from, tls_from
from ces_common.health import health_app, serve_http
from ces_common.natsauth import read_credentials
from ces_common.service import BadSetup, run_loops, run_service
from ces_common.setup_files import metrics_token
from ces_federation.peers import read_peers
from ces_federation.service import SERVICE, Federation
from ces_federation.settings import FederationSettings


async def run(settings: FederationSettings, stop: asyncio.Event) -> None:
    token, peers = metrics_token(settings), read_peers(settings.regions_file, settings.region)
    try:
        credentials = read_credentials(settings.wire_creds)
    except (OSError, ValueError) as error:
        raise BadSetup(f"CES_WIRE_CREDS: {settings.wire_creds} is no credentials file: {error}") from error
    bus = bus_from(settings, SERVICE)
    wire = NatsBus(settings.nats_urls, name=settings.region, credentials=credentials, tls=tls_from(settings))
    federation = Federation(bus, wire, settings, peers)

    async def work() -> None:
        await asyncio.gather(bus.connect(), wire.connect())
        await federation.run()

    async with serve_http(health_app(SERVICE, federation.missing, token), settings.http_host, settings.http_port):
        try:
            await run_loops(stop, work())
        finally:
            await federation.close()
            await asyncio.gather(bus.close(), wire.close())


if __name__ == "__main__":
    run_service(SERVICE, FederationSettings, run)
