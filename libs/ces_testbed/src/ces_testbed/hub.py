"""The hub between the regions of one machine: where its files lie, and what each region must know.

The hub is a nats-server without JetStream that regions' servers reach as leaf nodes. ``hub.json`` in its folder says
where it listens and which regions there are; beside it lie the hub's trust and certificate, and the credentials of each
region.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from itertools import combinations, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from ces_common.fields import Document
from ces_common.hosts import WORKERS
from ces_common.jobfile import DEFAULT_TENANT
from ces_common.natsauth import Trust, save_credentials
from ces_common.natsauth.regions import Leaf, hub_config, init_hub, init_region, wire_credentials
from ces_common.natsauth.secret_files import write_secret
from ces_common.tls.certificates import init_authority, renew
from ces_testbed.spec import LOCALHOST, BorderEnds, Files, RegionPlace, choose_ports
from ces_testbed.topology import Topology

BLOCK_BITS = 16
MOST_REGIONS = 8  # whole clusters on one machine
NAME = "hub"
BORDER = 100_000_000  # bit/s of a border link, each way
_LIFE = timedelta(days=365)


class Hub(Document):
    """``regions``: their names, and the folder of each one's files."""

    name: str
    port: Annotated[int, Field(ge=1, le=65535)]  # for regions' servers
    client_port: Annotated[int, Field(ge=1, le=65535)]  # for clients, of whom there are none
    regions: dict[str, Path]


class HubFiles:
    """The hub's files. ``root`` belongs to it alone."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.record = self.root / "hub.json"
        self.trust = self.root / "trust"
        self.tls = self.root / "tls"
        self.authority = self.tls / "authority.pem"
        self.certificate = self.tls / "hub.pem"
        self.config = self.root / "nats-server.conf"
        self.processes = self.root / "processes.json"
        self.log = self.root / "hub.log"

    def credentials(self, region: str) -> Path:
        return self.root / f"{region}.creds"

    def pair(self, one: str, other: str) -> Path:
        """The token that two regions share."""
        return self.root / f"pair-{'-'.join(sorted((one, other)))}.token"

    def read(self) -> Hub | None:
        try:
            return Hub.model_validate_json(self.record.read_text())
        except (OSError, ValueError):
            return None


def _trusted(hub: HubFiles, name: str, peer: str, border: BorderEnds | None) -> dict[str, object]:
    """All regions of one machine are one user's: each lets the jobs of the others' usual tenant in."""
    token = hub.pair(name, peer).read_text().strip()
    trusted: dict[str, object] = {
        "token": token,
        "accept": [DEFAULT_TENANT],
        "tenants": {DEFAULT_TENANT: DEFAULT_TENANT},
    }
    return trusted if border is None else trusted | {"border": border.model_dump()}


def blocks(count: int) -> list[IPv4Network]:
    """A block of addresses for each region; none overlaps another."""
    found = list(WORKERS.subnets(new_prefix=BLOCK_BITS))[:count]
    if len(found) < count:
        raise ValueError(f"{WORKERS} has no {count} blocks")
    return found


def region_names(hub: str, count: int) -> list[str]:
    """``local1``, ``local2`` and so on."""
    return [f"{hub}{number}" for number in range(1, count + 1)]


def places(files: HubFiles, hub: Hub, gateways: Mapping[str, str] = MappingProxyType({})) -> dict[str, RegionPlace]:
    """Where each region stands. ``gateways``: of those that have border links, the node at which these end; they lead
    to the regions before and after."""
    names = list(hub.regions)
    borders: dict[str, dict[str, BorderEnds]] = {name: {} for name in names}
    for one, other in pairwise(names):
        if not {one, other} <= gateways.keys():
            continue
        for here, there in ((one, other), (other, one)):
            ends = BorderEnds(gateway=gateways[here], there=gateways[there], bandwidth=BORDER)
            borders[here][there] = ends
    return {
        name: RegionPlace(
            hub=files.root,
            port=hub.port,
            block=block,
            peers=[each for each in names if each != name],
            borders=borders[name],
        )
        for name, block in zip(names, blocks(len(names)), strict=True)
    }


def gateway_of(topology: Topology) -> str:
    """The node of a region at which its border links end: its first switch, or its first node where it has none."""
    return next((node.name for node in topology.nodes if node.is_switch), topology.nodes[0].name)


def prepare(files: HubFiles, name: str, regions: dict[str, Path]) -> Hub:
    """Write all that the hub and its regions need before they start."""
    ports = choose_ports(LOCALHOST, 1)
    hub = Hub(name=name, port=ports.nats, client_port=ports.scheduler, regions=regions)
    files.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    trust = init_hub(files.trust)
    authority = init_authority(files.tls)
    renew(files.certificate, authority, [LOCALHOST], _LIFE, datetime.now(UTC))
    for region in regions:
        save_credentials(files.credentials(region), trust.admit(region))
    for one, other in combinations(regions, 2):
        write_secret(files.pair(one, other), secrets.token_urlsafe(32) + "\n")
    files.config.write_text(
        hub_config(trust, host=LOCALHOST, port=hub.client_port, leaf_port=hub.port, certificate=files.certificate)
    )
    files.record.write_text(hub.model_dump_json(indent=2))
    return hub


def join_hub(name: str, place: RegionPlace, files: Files, trust: Trust) -> Leaf:
    """Write what a region's federation service needs, and return how the region's server takes part."""
    hub = HubFiles(place.hub)
    account, token = init_region(trust, name)
    save_credentials(files.wire_credentials, wire_credentials(trust, account, name))
    peers = {peer: _trusted(hub, name, peer, place.borders.get(peer)) for peer in place.peers}
    write_secret(files.regions, json.dumps({"peers": peers}))
    url = f"tls://{LOCALHOST}:{place.port}"
    return Leaf(name, (url,), hub.credentials(name), account, token, hub.authority)
