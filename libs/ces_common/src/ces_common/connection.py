"""The connection to the bus that a service's settings describe."""

from __future__ import annotations

from ces_common.bus.nats import NatsBus
from ces_common.natsauth import read_credentials
from ces_common.service import BadSetup
from ces_common.settings import ServiceSettings


def bus_from(settings: ServiceSettings, name: str, *, replicas: int = 1) -> NatsBus:
    """A bus, not yet connected, for the identity ``name`` (a service or a node). ``replicas``: as for NatsBus. Raises
    BadSetup for a credentials file that is missing or cannot be read."""
    path = settings.nats_creds
    try:
        credentials = read_credentials(path) if path else None
    except (OSError, ValueError) as error:
        raise BadSetup(f"CES_NATS_CREDS: {path} is no credentials file: {error}") from error
    return NatsBus(settings.nats_urls, name=name, credentials=credentials, replicas=replicas)
