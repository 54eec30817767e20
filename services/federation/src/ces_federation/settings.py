"""The federation service's settings, ``CES_*`` in the environment."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

from pydantic import field_validator

from ces_common.fields import RegionName
from ces_common.hosts import WORKERS
from ces_common.settings import ServiceSettings
from ces_federation.chooser import Way


class FederationSettings(ServiceSettings):
    """``region``: this one's name. ``regions_file``: whom it trusts with what, readable by its owner only.
    ``wire_creds``: the NATS credentials file for the account that reaches other regions, on the same servers.
    ``address_block``: of this region's workers, as its manager has it. ``region_choice``: what chooses the regions that
    are asked; ``region_policy``: the policy's file, None for the one that ships with this service."""

    region: RegionName
    regions_file: Path
    wire_creds: Path
    address_block: IPv4Network = WORKERS
    region_choice: Way = "rule"
    region_policy: Path | None = None

    @field_validator("region_policy", mode="before")
    @classmethod
    def _shipped_if_empty(cls, value: object) -> object:
        return value or None
