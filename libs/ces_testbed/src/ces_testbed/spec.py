"""What a local cluster is to be, and where its files lie."""

from __future__ import annotations

import os
import random
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ces_common.fields import Document, NodeName
from ces_common.messages.base import Message
from ces_common.runtime import RuntimeKind
from ces_testbed.addressing import CLUSTER_NAME
from ces_testbed.topology import Topology

Network = Literal["tc", "none"]
LOCALHOST = "127.0.0.1"
API_PORT = 8080
# Below the ports that the system hands out to clients, so that none of those is in the way after a restart.
_PORTS = range(20000, 32000)
_TRIES = 200
# Ports that were found free are bound here until as many more are: nobody else finds them free before those they are
# for have started, who can listen all the same, since they allow what is bound to be bound again (SO_REUSEADDR).
_held: deque[socket.socket] = deque(maxlen=64)
MOST_ALIKE = 5  # managers, or schedulers, side by side


class Timing(Document):
    """The manager's clocks, in seconds. Short: on one machine silence means death."""

    lease_s: Annotated[float, Field(gt=0)] = 20.0
    lease_margin_s: Annotated[float, Field(gt=0)] = 4.0
    unreachable_s: Annotated[float, Field(gt=0)] = 8.0


class BorderEnds(Document):
    """A border link to another region: its end here and there, bit/s each way."""

    gateway: NodeName
    there: NodeName
    bandwidth: Annotated[int, Field(gt=0)]


class RegionPlace(Document):
    """A cluster's place among regions; its own name is the region's. ``hub``: the folder of the hub's files, ``port``:
    where that listens for regions. ``block``: the addresses of the region's workers. ``peers``: the other regions,
    ``borders``: those to which a border link leads."""

    hub: Path
    port: Annotated[int, Field(ge=1, le=65535)]
    block: IPv4Network
    peers: list[Annotated[str, Field(pattern=CLUSTER_NAME.pattern)]]
    borders: dict[str, BorderEnds] = {}


class ClusterSpec(Document):
    """``api_port`` and ``nats_port`` stay the same for the cluster's life, so that a restarted service is found."""

    name: Annotated[str, Field(pattern=CLUSTER_NAME.pattern)]
    topology: Topology
    runtime: RuntimeKind = RuntimeKind.PROCESS
    network: Network = "none"
    api_port: Annotated[int, Field(ge=1, le=65535)] = API_PORT
    timing: Timing = Timing()
    managers: Annotated[int, Field(ge=1, le=MOST_ALIKE)] = 1
    schedulers: Annotated[int, Field(ge=1, le=MOST_ALIKE)] = 1
    database_url: str | None = None  # SQLite among the cluster's files when left out
    encrypted: bool = True  # TLS between all of it; without, what TLS costs can be measured
    save_context: bool = True  # make `ces` commands of this user talk to it
    queue: Path | None = None  # the file of the queue's parameters and tenants; all defaults when left out
    region: RegionPlace | None = None  # None: it is no region
    settings: dict[str, str] = {}  # more environment variables CES_* for every service
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _has_workers(self) -> Self:
        if not self.topology.workers:
            raise ValueError("topology: every node is a switch: there is nowhere to run a task")
        return self

    @property
    def takes_name(self) -> bool:
        """Whether it makes what is found by its name on the whole machine: namespaces and bridges, or containers."""
        return self.network == "tc" or self.runtime == RuntimeKind.DOCKER


class Ports(Message):
    """Where this cluster's services listen on this machine. ``more``: those beyond the first of their kind, by name."""

    nats: int
    nats_monitor: int
    api: int
    scheduler: int
    compute_ctl: int
    network_ctl: int
    more: dict[str, int] = {}


class Addresses(Message):
    """Where the central services listen. Agents remember it, so it stays the same for the cluster's life."""

    host: str
    ports: Ports


class Files:
    """A cluster's files. ``root`` belongs to it alone and goes with it, but for the logs."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.spec = self.root / "cluster.json"
        self.addresses = self.root / "addresses.json"  # written once the cluster was up
        self.logs = self.root / "logs"
        self.progress = self.logs / "progress.jsonl"  # kept: it tells how the cluster ended
        self.processes = self.root / "processes.json"
        self.token = self.root / "admin.token"
        self.metrics_token = self.root / "metrics.token"  # by which the central services' metrics may be read
        self.secrets_key = self.root / "secrets.key"
        self.database = self.root / "ces.db"
        self.trust = self.root / "trust"
        self.tls = self.root / "tls"
        self.authority = self.tls / "authority.pem"
        self.nats_certificate = self.tls / "nats.pem"
        self.nats = self.root / "nats"
        self.credentials = self.root / "credentials"
        self.agents = self.root / "agents"
        self.regions = self.root / "regions.yaml"  # whom it trusts, as one of several regions
        self.wire_credentials = self.credentials / "wire.creds"

    def own(self) -> list[Path]:
        """All that a cluster writes here but its logs; the spec last, which marks the folder as a cluster's."""
        keys = (self.token, self.metrics_token, self.secrets_key, self.trust, self.tls, self.credentials, self.regions)
        fixed = (self.addresses, self.processes, *keys, self.nats, self.agents)
        return [*fixed, *self.root.glob(self.database.name + "*"), self.spec]

    def agent(self, node: str) -> Path:
        return self.agents / node

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    def prepare(self) -> None:
        for folder in (self.root, self.nats, self.credentials, self.agents, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root.chmod(0o700)

    def read_spec(self) -> ClusterSpec | None:
        try:
            return ClusterSpec.model_validate_json(self.spec.read_text())
        except (OSError, ValueError):
            return None

    def read_addresses(self) -> Addresses | None:
        """Where the cluster of this folder listens; None where it was never up."""
        try:
            return Addresses.model_validate_json(self.addresses.read_text())
        except (OSError, ValueError):
            return None


def default_root(cluster: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Where ``ces up`` keeps a cluster's files: ``XDG_STATE_HOME``/ces/<cluster>."""
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "ces" / cluster


def port_is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str, taken: set[int]) -> int:
    """A port that nobody listens on now, that is not in ``taken``, and that nobody else finds here for now. Raises
    OSError."""
    for _ in range(_TRIES):
        port = random.choice(_PORTS)
        if port not in taken and (held := _hold(host, port)) is not None:
            _held.append(held)
            taken.add(port)
            return port
    raise OSError(f"no free port found on {host}")


def _hold(host: str, port: int) -> socket.socket | None:
    """Bind as the only one, and then let others listen there: Linux asks both for SO_REUSEADDR, socket(7)."""
    probe = socket.socket()
    try:
        probe.bind((host, port))
    except OSError:
        probe.close()
        return None
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe


def choose_ports(host: str, api_port: int, more: Iterable[str] = ()) -> Ports:
    """``more``: services beyond the first of their kind."""
    taken = {api_port}
    return Ports(
        nats=free_port(host, taken),
        nats_monitor=free_port(host, taken),
        api=api_port,
        scheduler=free_port(host, taken),
        compute_ctl=free_port(host, taken),
        network_ctl=free_port(host, taken),
        more={name: free_port(host, taken) for name in more},
    )
