"""The federation service's settings, ``CES_*`` in the environment."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

from ces_common.fields import RegionName
from ces_common.hosts import WORKERS
from ces_common.settings import ServiceSettings


class FederationSettings(ServiceSettings):
    """``region``: this one's name. ``regions_file``: whom it trusts with what, readable by its owner only.
    ``wire_creds``: the NATS credentials file for the account that reaches other regions, on the same servers.
    ``address_block``: of this region's workers, as its manager has it."""

    region: RegionName
    regions_file: Path
    wire_creds: Path
    address_block: IPv4Network = WORKERS
