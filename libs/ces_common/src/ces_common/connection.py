"""The connection to the bus that a service's settings describe."""

from __future__ import annotations

import ssl

from ces_common.bus.nats import NatsBus
from ces_common.natsauth import read_credentials
from ces_common.service import BadSetup
from ces_common.settings import ServiceSettings
from ces_common.tls.pins import trusting


def bus_from(settings: ServiceSettings, name: str, *, replicas: int = 1) -> NatsBus:
    """A bus, not yet connected, for the identity ``name`` (a service or a node). ``replicas``: as for NatsBus. Raises
    BadSetup for a file of credentials or certificates that is missing or cannot be read."""
    path = settings.nats_creds
    try:
        credentials = read_credentials(path) if path else None
    except (OSError, ValueError) as error:
        raise BadSetup(f"CES_NATS_CREDS: {path} is no credentials file: {error}") from error
    tls = tls_from(settings)
    return NatsBus(settings.nats_urls, name=name, credentials=credentials, replicas=replicas, tls=tls)


def tls_from(settings: ServiceSettings) -> ssl.SSLContext | None:
    """What NATS is checked by; None where it is spoken to in the clear. Raises BadSetup."""
    if not settings.encrypted:
        return None
    try:
        return trusting(settings.ca.read_text() if settings.ca else None)
    except (OSError, ValueError) as error:  # a file that is no certificate's is among both
        raise BadSetup(f"CES_CA: {settings.ca} cannot be used as an authority's certificate: {error}") from error
