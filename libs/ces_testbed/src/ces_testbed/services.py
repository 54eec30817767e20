"""The services of a local cluster: how each is started. Pure."""

from __future__ import annotations

import os
import re
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ces_client.context import context_path
from ces_common.natsauth import AGENT, Trust
from ces_common.quantities import format_cpu
from ces_common.tls.pins import trusting
from ces_testbed.addressing import data_plane, host_namespace
from ces_testbed.processes import MARK
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, Ports
from ces_testbed.supervisor import Service
from ces_testbed.topology import TestbedNode

NATS = "nats"
MANAGER = "manager"
SCHEDULER = "scheduler"
CONTROLLERS = (SCHEDULER, "compute-ctl", "network-ctl")
CENTRAL = (NATS, MANAGER, *CONTROLLERS)
FEDERATION = "federation"
MODULES = {
    MANAGER: "ces_manager",
    SCHEDULER: "ces_scheduler",
    "compute-ctl": "ces_compute_ctl",
    "network-ctl": "ces_network_ctl",
    FEDERATION: "ces_federation",
}
AGENT_MODULE = "ces_edge_agent"
_ITS_OWN = "a local cluster decides it itself"
_IN_TOPOLOGY = "it stands in the topology file, for each node"
DECIDED = {
    "CES_ADDRESS_BLOCK": "use --regions",
    "CES_ADMIN_TOKEN_FILE": _ITS_OWN,
    "CES_ADVERTISED_NATS_URLS": _ITS_OWN,
    "CES_AGENT_SIGNING_KEY_FILE": _ITS_OWN,
    "CES_CA": _ITS_OWN,
    "CES_CLUSTER": "use --name",
    "CES_DATABASE_URL": _ITS_OWN,
    "CES_DATA_PLANE": _ITS_OWN,
    "CES_DATASETS": _IN_TOPOLOGY,
    "CES_HIDE": _ITS_OWN,
    "CES_HOST_ADDRESS": _ITS_OWN,
    "CES_HTTP_HOST": _ITS_OWN,
    "CES_HTTP_PORT": "use --port",
    "CES_JOIN_TOKEN": _ITS_OWN,
    "CES_JOIN_TOKEN_FILE": _ITS_OWN,
    "CES_MANAGER_URL": _ITS_OWN,
    "CES_METRICS_TOKEN_FILE": _ITS_OWN,
    "CES_MIGRATE": _ITS_OWN,
    "CES_NATS_CERTIFICATE": _ITS_OWN,
    "CES_NATS_CREDS": _ITS_OWN,
    "CES_NATS_URLS": _ITS_OWN,
    "CES_NETWORK": "use --network",
    "CES_NODE": _IN_TOPOLOGY,
    "CES_NODE_CPU": _IN_TOPOLOGY,
    "CES_NODE_GPU": _IN_TOPOLOGY,
    "CES_NODE_LABELS": _IN_TOPOLOGY,
    "CES_NODE_MEMORY": _IN_TOPOLOGY,
    "CES_QUEUE": "use --queue",
    "CES_REGION": "use --regions",
    "CES_REGIONS_FILE": _ITS_OWN,
    "CES_REVOCATION_KEY_FILE": _ITS_OWN,
    "CES_RUNTIME": "use --runtime",
    "CES_SECRETS_KEY_FILE": _ITS_OWN,
    "CES_STATE_DIR": _ITS_OWN,
    "CES_TLS_DIR": _ITS_OWN,
    "CES_WIRE_CREDS": _ITS_OWN,
}
"""Settings that a cluster gives its services itself, and what to do instead of setting them."""


def agent_name(node: str) -> str:
    """The name of a node's agent among the cluster's services."""
    return f"agent-{node}"


def alike(kind: str, count: int) -> list[str]:
    """The names of ``count`` services of a kind, side by side: ``manager``, ``manager-2``, and so on."""
    return [kind if number == 1 else f"{kind}-{number}" for number in range(1, count + 1)]


def kind_of(service: str) -> str:
    """Which kind a central service is of."""
    return re.sub(r"-\d+$", "", service)


@dataclass(frozen=True)
class Layout:
    """A cluster with everything that is decided when it starts. ``host``: where its central services listen.
    ``encrypted``: whether API and NATS speak TLS."""

    spec: ClusterSpec
    files: Files
    ports: Ports
    host: str = LOCALHOST
    encrypted: bool = True

    @property
    def managers(self) -> list[str]:
        return alike(MANAGER, self.spec.managers)

    @property
    def controllers(self) -> list[str]:
        """The central services but the managers, in the order in which they start."""
        own = [name for kind in CONTROLLERS for name in alike(kind, self.spec.schedulers if kind == SCHEDULER else 1)]
        return own if self.spec.region is None else [*own, FEDERATION]

    @property
    def api_url(self) -> str:
        return self.url(MANAGER)

    def url(self, service: str) -> str:
        scheme = "https" if self.encrypted and kind_of(service) == MANAGER else "http"
        return f"{scheme}://{self.host}:{self.port(service)}"

    def port(self, service: str) -> int:
        """On which a central service listens."""
        ports = self.ports
        own: int = ports.api if service == MANAGER else getattr(ports, service.replace("-", "_"), 0)
        return ports.more.get(service, own)

    @property
    def nats_url(self) -> str:
        return f"{'tls' if self.encrypted else 'nats'}://{self.host}:{self.ports.nats}"

    @property
    def authority(self) -> Path | None:
        """The certificate that API and NATS are checked by."""
        return self.files.authority if self.encrypted else None

    def tls(self) -> ssl.SSLContext | None:
        """What a client checks API and NATS by; None where they are in the clear."""
        return None if self.authority is None else trusting(self.authority.read_text())

    def ready_url(self, service: str) -> str:
        """Where a central service says whether it is ready."""
        return f"{self.url(service)}/readyz"

    def credentials(self, service: str) -> Path:
        return self.files.credentials / f"{kind_of(service)}.creds"


def base_env(layout: Layout, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The caller's environment without its own CES settings, which are for another process, and with the cluster's."""
    env = {name: value for name, value in environment.items() if not name.startswith("CES_")}
    direct = [part for part in (env.get("no_proxy") or env.get("NO_PROXY") or "").split(",") if part]
    env["no_proxy"] = env["NO_PROXY"] = ",".join([*direct, LOCALHOST, layout.host])
    own = {"CES_LOG_LEVEL": layout.spec.log_level} | layout.spec.settings
    return env | own | {MARK: str(layout.files.root), "PYTHONUNBUFFERED": "1"}


def nats_service(layout: Layout, binary: Path, config: Path) -> Service:
    return Service(NATS, (str(binary), "--config", str(config)), base_env(layout), layout.files.log(NATS))


def manager_service(layout: Layout, trust: Trust, name: str = MANAGER) -> Service:
    timing = layout.spec.timing
    clocks = {
        "CES_LEASE_S": str(timing.lease_s),
        "CES_LEASE_MARGIN_S": str(timing.lease_margin_s),
        "CES_UNREACHABLE_S": str(timing.unreachable_s),
    }
    env = {
        "CES_HTTP_PORT": str(layout.port(name)),
        "CES_DATABASE_URL": layout.spec.database_url or f"sqlite:///{layout.files.database}",
        "CES_MIGRATE": "true",
        "CES_ADMIN_TOKEN_FILE": str(layout.files.token),
        "CES_AGENT_SIGNING_KEY_FILE": str(trust.signing_key_file(AGENT)),
        "CES_REVOCATION_KEY_FILE": str(trust.revocation_key_file),
        "CES_SECRETS_KEY_FILE": str(layout.files.secrets_key),
        "CES_ADVERTISED_NATS_URLS": layout.nats_url,
    }
    env |= _region(layout)
    if layout.encrypted:
        env |= {"CES_TLS_DIR": str(layout.files.tls), "CES_NATS_CERTIFICATE": str(layout.files.nats_certificate)}
    return _central(layout, name, clocks | layout.spec.settings | env | _queue(layout))


def controller_service(layout: Layout, name: str) -> Service:
    env = {"CES_HTTP_PORT": str(layout.port(name))}
    if name == FEDERATION:
        env |= _region(layout) | {
            "CES_REGIONS_FILE": str(layout.files.regions),
            "CES_WIRE_CREDS": str(layout.files.wire_credentials),
        }
    return _central(layout, name, env | (_queue(layout) if kind_of(name) == SCHEDULER else {}))


def _region(layout: Layout) -> dict[str, str]:
    region = layout.spec.region
    return {} if region is None else {"CES_REGION": layout.spec.name, "CES_ADDRESS_BLOCK": str(region.block)}


def _queue(layout: Layout) -> dict[str, str]:
    return {} if layout.spec.queue is None else {"CES_QUEUE": str(layout.spec.queue.absolute())}


def _central(layout: Layout, name: str, env: Mapping[str, str]) -> Service:
    common = {
        "CES_HTTP_HOST": layout.host,
        "CES_METRICS_TOKEN_FILE": str(layout.files.metrics_token),
        "CES_NATS_URLS": layout.nats_url,
        "CES_NATS_CREDS": str(layout.credentials(name)),
    }
    if layout.authority is not None:
        common["CES_CA"] = str(layout.authority)
    whole = base_env(layout) | common | dict(env)
    return Service(name, (sys.executable, "-m", MODULES[kind_of(name)]), whole, layout.files.log(name))


def agent_service(layout: Layout, node: TestbedNode, token: str | None, address: str) -> Service:
    """An agent in its host's namespace, or beside the others on this machine where the network is ``none``. ``token``:
    with which it joins; None for one that has joined."""
    spec = layout.spec
    isolated = spec.network == "tc"
    env = {
        "CES_NODE": node.name,
        "CES_CLUSTER": spec.name,
        "CES_MANAGER_URL": layout.api_url,
        "CES_NATS_URLS": layout.nats_url,
        "CES_STATE_DIR": str(layout.files.agent(node.name)),
        "CES_NODE_CPU": format_cpu(node.cpu),
        "CES_NODE_MEMORY": str(node.memory),
        "CES_NODE_GPU": str(node.gpu),
        "CES_NODE_LABELS": ",".join(f"{key}={value}" for key, value in sorted(node.labels.items())),
        "CES_RUNTIME": spec.runtime,
        "CES_NETWORK": spec.network,
        "CES_HOST_ADDRESS": address,
        "CES_HTTP_PORT": "0",
        # The administrator's token and every other node's secrets, which lie on the same disk here.
        "CES_HIDE": ",".join(str(path) for path in (layout.files.root, context_path())),
    }
    if token is not None:
        env["CES_JOIN_TOKEN"] = token
    if node.datasets is not None:
        env["CES_DATASETS"] = str(node.datasets.absolute())
    if isolated:
        env["CES_DATA_PLANE"] = data_plane(spec.name, node.name)
    return Service(
        agent_name(node.name),
        (sys.executable, "-m", AGENT_MODULE),
        {"CES_MEASURE": "false"} | base_env(layout) | env,  # all share this machine, and would measure each other
        layout.files.log(agent_name(node.name)),
        host_namespace(spec.name, node.name) if isolated else None,
    )
