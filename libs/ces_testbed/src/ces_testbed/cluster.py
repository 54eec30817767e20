"""A whole cluster on one machine: NATS, a SQLite database, the central services, and an agent on every host.

Every service is a process of its own with a log of its own, watched by a supervisor that lives in the calling
process. Use it as a context manager, or call ``stop``.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

import httpx

from ces_client import Client, Context, save_context
from ces_common import natsserver
from ces_common.natsauth import init_trust, save_credentials, server_config
from ces_common.natsauth.secret_files import write_secret
from ces_testbed import services
from ces_testbed.cleanup import leftovers, remove_files, remove_remains
from ces_testbed.errors import Interrupted, StartFailed
from ces_testbed.processes import Records, wait_until
from ces_testbed.services import CONTROLLERS, MANAGER, NATS, SCHEDULER, Layout, agent_name
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, choose_ports, port_is_free
from ces_testbed.supervisor import Supervisor

if TYPE_CHECKING:
    from ces_testbed.hosts import Hosts

READY_S = 90.0
COMPILED_S = 600.0  # the scheduler is ready once its solver is compiled: a minute of CPU time, where that is not kept
MANY_STARTS = 4
CENTRAL = 2 + len(CONTROLLERS)
LOG_LINES = 15

Report = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is


class Cluster:
    """``wanted`` is asked again and again while starting: once it answers False, starting ends with Interrupted.
    ``agents``: False where whoever makes the cluster brings the agents and the topology, as a benchmark does."""

    def __init__(
        self,
        spec: ClusterSpec,
        files: Files,
        *,
        report: Report = lambda *_: None,
        wanted: Callable[[], bool] = lambda: True,
        agents: bool = True,
    ) -> None:
        self.spec, self.files = spec, files
        self._report, self._wanted, self._with_agents = report, wanted, agents
        self.supervisor = Supervisor(Records(files.processes))
        self._layout: Layout | None = None
        self._token = secrets.token_urlsafe(32)
        self._hosts: Hosts | None = None
        if spec.network == "tc":
            from ces_testbed.hosts import Hosts

            self._hosts = Hosts(spec.name, spec.topology)

    @property
    def layout(self) -> Layout:
        if self._layout is None:
            raise StartFailed("the cluster is not started")
        return self._layout

    @property
    def hosts(self) -> Hosts:
        """The emulated hosts, for faults. Raises StartFailed with network ``none``, which has none."""
        if self._hosts is None:
            raise StartFailed("with network none there are no emulated hosts")
        return self._hosts

    @property
    def url(self) -> str:
        return self.layout.api_url

    @property
    def token(self) -> str:
        return self._token

    def client(self) -> Client:
        """A client with the admin token; close it."""
        return Client(self.url, self._token)

    def kill(self, service: str, *, stay_down: bool = False) -> None:
        """kill -9; it starts again by itself unless told to stay down. Agents are ``agent-<node>``."""
        self.supervisor.kill(service, stay_down=stay_down)

    def restart(self, service: str, env: Mapping[str, str] | None = None) -> None:
        """Start it with the state it has, ending it first where it runs; with more environment for this one start."""
        self.supervisor.restart(service, env)

    def start(self) -> None:
        """Everything up, in order, each step waiting until the one before works. Raises StartFailed, Interrupted.

        What was started stays until ``stop``, also when this raises.
        """
        for module in (*services.MODULES.values(), services.AGENT_MODULE):
            if find_spec(module) is None:
                raise StartFailed(f"{module} is not installed here: pip install {module.replace('_', '-')}")
        self.files.prepare()
        self.files.spec.write_text(self.spec.model_dump_json(indent=2))
        nodes = self.spec.topology.nodes
        host = LOCALHOST
        if self._hosts is not None:
            self._report("hosts", 0, len(nodes))
            self._hosts.up()
            host = self._hosts.gateway
            self._report("hosts", len(nodes), len(nodes))
        if not port_is_free(host, self.spec.api_port):
            raise StartFailed(f"port {self.spec.api_port} on {host} is in use")
        self._layout = Layout(self.spec, self.files, choose_ports(host, self.spec.api_port), host)
        self._start_central()
        with self.client() as client:
            for name in CONTROLLERS:
                self.supervisor.add(services.controller_service(self.layout, name))
            if self._with_agents:
                client.topology.put(self.spec.topology.network)
                self._start_agents(client)
            self._await_controllers()
            if self._with_agents:
                self._await_agents(client)
        if self.spec.save_context:
            save_context(Context(self.url, self._token))

    def stop(self) -> list[str]:
        """End it all and take everything away but the logs; answers what could not be removed."""
        agents = [name for name in self.supervisor.names() if name.startswith("agent-")]
        self._report("stopping", 0, 3)
        self.supervisor.stop(agents, [*CONTROLLERS, MANAGER], [NATS])
        self._report("stopping", 1, 3)
        containers = self.spec.runtime == "docker"
        remove_remains(self.spec.name, self.files, containers=containers)
        self._report("stopping", 2, 3)
        left = leftovers(self.spec.name, self.files, containers=containers)
        if not left:
            remove_files(self.files)
        self._report("stopping", 3, 3)
        return left

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_central(self) -> None:
        layout = self.layout
        write_secret(self.files.token, self._token + "\n")
        trust = init_trust(self.files.trust)
        for name in (MANAGER, *CONTROLLERS):
            save_credentials(layout.credentials(name), trust.new_credentials(name, name))
        config = self.files.nats / "nats-server.conf"
        config.write_text(
            server_config(
                trust,
                store_dir=self.files.nats / "store",
                host=layout.host,
                port=layout.ports.nats,
                monitor_port=layout.ports.nats_monitor,
            )
        )
        self._report("services", 0, CENTRAL)
        self.supervisor.add(services.nats_service(layout, natsserver.binary(), config))
        self._await(NATS, lambda: _accepts(layout.host, layout.ports.nats))
        self._report("services", 1, CENTRAL)
        # The others need the streams that the manager makes.
        self.supervisor.add(services.manager_service(layout, trust))
        self._await_answer(MANAGER)
        self._report("services", 2, CENTRAL)

    def _await_controllers(self) -> None:
        for done, name in enumerate(CONTROLLERS, start=3):
            self._await_answer(name)
            self._report("services", done, CENTRAL)

    def _start_agents(self, client: Client) -> None:
        self._report("agents", 0, len(self.spec.topology.nodes))
        for node in self.spec.topology.nodes:
            token = client.nodes.create_token(node.name).token
            address = self._hosts.address(node.name) if self._hosts is not None else LOCALHOST
            self.supervisor.add(services.agent_service(self.layout, node, token, address))

    def _await_agents(self, client: Client) -> None:
        total = len(self.spec.topology.nodes)
        silent = {node.name for node in self.spec.topology.nodes}

        def all_heard() -> bool:
            heard = silent & {view.name for view in client.nodes.list() if view.state == "ready"}
            if heard:
                silent.difference_update(heard)
                self._report("agents", total - len(silent), total)
            return not silent

        self._await_all([agent_name(name) for name in sorted(silent)], all_heard, pause_s=0.2)

    def _await_answer(self, name: str) -> None:
        patience_s = COMPILED_S if name == SCHEDULER else READY_S
        with httpx.Client(timeout=2, trust_env=False) as http:
            self._await(name, lambda: _answers(http, self.layout.ready_url(name)), patience_s)

    def _await(self, name: str, condition: Callable[[], bool], patience_s: float = READY_S) -> None:
        self._await_all([name], condition, pause_s=0.05, patience_s=patience_s)

    def _await_all(
        self, names: list[str], condition: Callable[[], bool], pause_s: float, patience_s: float = READY_S
    ) -> None:
        def settled() -> bool:
            if not self._wanted():
                raise Interrupted("asked to end while starting")
            for name in names:
                if self.supervisor.starts(name) >= MANY_STARTS:
                    raise StartFailed(f"{name} ends again and again; the end of its log:\n{self.log_tail(name)}")
            return condition()

        if not wait_until(settled, patience_s, pause_s):
            logs = "\n".join(f"{name}:\n{self.log_tail(name)}" for name in names[:2])
            raise StartFailed(f"not ready within {patience_s:g} s: {', '.join(names)}; the end of the log:\n{logs}")

    def log_tail(self, service: str, lines: int = LOG_LINES) -> str:
        try:
            return "\n".join(self.files.log(service).read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def _answers(http: httpx.Client, url: str) -> bool:
    try:
        return http.get(url).status_code == 200
    except httpx.TransportError:
        return False
