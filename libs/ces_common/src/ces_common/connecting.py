"""From settings to a bus."""

from __future__ import annotations

from pathlib import Path

from ces_common.bus import Credentials, NatsBus
from ces_common.natsauth import read_credentials
from ces_common.service import BadSetup
from ces_common.settings import ServiceSettings


class NoCredentials(BadSetup):
    """The credentials file is missing or unreadable."""


def bus_from(settings: ServiceSettings, name: str) -> NatsBus:
    """A bus, not yet connected, for the identity ``name`` (a service or a node). Raises NoCredentials."""
    credentials = _read(settings.nats_creds) if settings.nats_creds else None
    return NatsBus(settings.nats_urls, name=name, credentials=credentials)


def _read(path: Path) -> Credentials:
    try:
        return read_credentials(path)
    except (OSError, ValueError) as error:
        raise NoCredentials(f"CES_NATS_CREDS: {path} is no credentials file: {error}") from error
