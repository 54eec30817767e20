"""A real cluster for fault tests, and what must hold of it afterwards, whatever was done to it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import httpx
import psycopg
from waiting import PATIENCE_S, pause_after, wait_for
from worker_records import Life, outside, read_lives, twice_alive

from ces_client import Client
from ces_client.audit import Books, Event, Inventory
from ces_client.audit_inputs import links_of_file, request_of
from ces_client.errors import Unreachable
from ces_common.messages.api import JobView
from ces_common.names import BORDER_MARK
from ces_common.states import JOB_OVER
from ces_testbed.cluster import Cluster
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, Timing, free_port
from ces_testbed.topology import Topology

PROGRAMS = Path(__file__).parents[1] / "e2e" / "programs"
T = TypeVar("T")
SETTLE_S = 120.0
DOWN_S = 120.0  # how long the manager may be away


def star(hosts: int, *, cpu: str = "2", link: str = "100Mbit") -> Topology:
    """Hosts n1.. around a switch: every path between two of them has two hops."""
    names = [f"n{i}" for i in range(1, hosts + 1)]
    nodes = [{"name": name, "cpu": cpu, "memory": "2Gi", "labels": {"host": name}} for name in names]
    links = [{"src": name, "dst": "s1", "bandwidth": link} for name in names]
    return Topology.model_validate({"nodes": [*nodes, {"name": "s1", "cpu": 0}], "links": links})


def program(name: str, *arguments: object) -> dict[str, Any]:
    """A task's command that runs a program of these tests wherever there is a Python."""
    source = (PROGRAMS / f"{name}.py").read_text()
    start = "import os; exec(compile(os.environ.pop('CES_TEST_PROGRAM'), 'program', 'exec'))"
    return {
        "command": ["python", "-u", "-c", start, *map(str, arguments)],
        "env": {"CES_TEST_PROGRAM": source},
    }


def recorded_job(name: str, *arguments: object, replicas: int = 3, **more: Any) -> dict[str, Any]:
    """A ring of workers that record their lives. ``arguments``: seconds to live, how to end, a file that holds them."""
    return {
        "name": name,
        "tasks": [
            {
                "name": "w",
                "replicas": replicas,
                "image": "ces-worker-test",
                "resources": {"cpu": "200m", "memory": "64Mi"},
                **program("recorded", *arguments),
            }
        ],
        "flows": {"topology": "ring", "bandwidth": {"min": "2Mbit", "max": "10Mbit"}},
        **more,
    }


class FaultCluster:
    """A started cluster with a client."""

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self.cluster, self.client = cluster, client
        self.nodes = [node.name for node in cluster.spec.topology.workers]
        wait_for(self._network_laid, "the network of every node is in place")
        self._fresh = self.kernel_state()

    def _network_laid(self) -> bool:
        def laid(node: Any) -> bool:
            links = {device: has for device, has in node["classes"].items() if device.startswith("to-")}
            return all(links.values()) and len([route for route in node["routes"] if "/24" in route]) >= len(links)

        state = self.kernel_state()
        return all(laid(state[node.name]) for node in self.cluster.spec.topology.nodes if state)

    def ask(self, question: Callable[[], T]) -> T:
        """The manager's answer; it may have been killed just now."""
        deadline = time.monotonic() + DOWN_S
        while True:
            try:
                return question()
            except Unreachable:
                if time.monotonic() > deadline:
                    raise

    # doing

    def submit(self, job: Mapping[str, Any]) -> str:
        key = uuid.uuid4().hex  # the answer may be lost with the manager that gave it
        return self.ask(lambda: self.client.jobs.submit(job, idempotency_key=key)).id

    def await_state(self, job: str, *states: str, timeout_s: float = PATIENCE_S) -> JobView:
        """The job once it is in one of the states. Fails at once where it ended in another."""
        began = time.monotonic()
        while True:
            view = self.ask(lambda: self.client.jobs.get(job))
            if view.state in states:
                return view
            waited_s = time.monotonic() - began
            if view.state in JOB_OVER or waited_s > timeout_s:
                raise AssertionError(
                    f"job is {view.state} ({view.reason}; {view.waiting}), not {states}\n{self.story(job)}"
                )
            time.sleep(pause_after(waited_s))

    def finish(self, job: str, timeout_s: float = PATIENCE_S) -> JobView:
        return self.await_state(job, "succeeded", timeout_s=timeout_s)

    def await_start_of(self, service: str, count: int) -> None:
        """Until a service was started so often: a killed one starts again by itself."""
        wait_for(lambda: self.cluster.supervisor.starts(service) >= count, f"{service} starts again")

    def arm(self, service: str, fault: str) -> int:
        """Restart a service so that it kills itself at a named point; answers how often it was started then."""
        self.cluster.restart(service, {"CES_FAULT": fault})
        return self.cluster.supervisor.starts(service)

    # looking

    def ready(self, service: str) -> str | None:
        """What a central service says it misses; None when it is ready."""
        layout = self.cluster.layout
        answer = httpx.get(layout.ready_url(service), timeout=10, trust_env=False, verify=layout.tls() or False).json()
        missing: str | None = answer.get("missing")
        return missing

    def story(self, job: str) -> str:
        lines = []
        for event in self.events():
            if event["data"].get("job") == job:
                data = {k: v for k, v in event["data"].items() if k not in ("job", "allocations", "flows", "metrics")}
                lines.append(f"{event['time']} {event['type']} {data}")
        return "\n".join(lines[-40:])

    def events(self) -> list[Event]:
        """The whole event log, as the database has it."""
        query = "SELECT body FROM events ORDER BY sequence"
        url = self.cluster.spec.database_url or f"sqlite:///{self.cluster.files.database}"
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)) as file:
                return [json.loads(body) for (body,) in file.execute(query)]
        with psycopg.connect(url.replace("+psycopg", "")) as server:
            return [json.loads(body) for (body,) in server.execute(query)]

    def inventory(self) -> Inventory:
        asked = {job.id: request_of(self.client.jobs.get(job.id)) for job in self.client.jobs.list()}
        known = links_of_file(self.cluster.spec.topology.network)
        border = [x for x in self.client.topology.links() if BORDER_MARK in x.src + x.dst]
        links = {(x.src, x.dst): x.bandwidth for x in border}
        return Inventory(jobs=asked, **known | {"links": known["links"] | links})

    def books(self, *, finished: bool = True) -> Books:
        books = Books(self.ask(self.inventory))
        for event in self.events():
            books.read(event)
        books.close(finished=finished)
        return books

    def lives(self, job: str | None = None) -> list[Life]:
        """What workers recorded of themselves: of one job, or of all."""
        lives = read_lives(self.cluster.files.agents)
        if job is None:
            return lives
        mine = {each.id for each in self.books(finished=False).allocations.values() if each.job == job}
        return [life for life in lives if life.allocation in mine]

    def worker_pids(self, job: str | None = None) -> list[int]:
        """Processes of this machine that run a program of these tests for this cluster: for one job, or for any."""
        jobs = {job} if job else {each.id for each in self.client.jobs.list()}
        return sorted(pid for pid, env in environments() if "CES_TEST_PROGRAM" in env and env.get("CES_JOB") in jobs)

    def kernel_state(self) -> dict[str, Any]:
        """Namespaces, devices, rules, routes and traffic classes of the cluster's hosts, as the kernel tells."""
        if self.cluster.spec.network != "tc":
            return {}
        prefix = f"ces-{self.cluster.spec.name}-"
        spaces = sorted(name for name in os.listdir("/run/netns") if name.startswith(prefix))
        state: dict[str, Any] = {"namespaces": spaces}
        for node in self.cluster.spec.topology.nodes:
            space = self.cluster.hosts.data_plane(node.name)
            devices = [link["ifname"] for link in _json(space, "ip", "-j", "link")]
            state[node.name] = {
                "devices": sorted(devices),
                "rules": len(_json(space, "ip", "-j", "rule")),
                "routes": sorted(route["dst"] for route in _json(space, "ip", "-j", "route", "show", "table", "all")),
                "classes": {
                    device: sorted(line.split()[2] for line in _lines(space, "tc", "class", "show", "dev", device))
                    for device in devices
                },
            }
        return state

    def renumbered(self, before: str, after: str) -> None:
        """A node of a forgotten one's name has another subnet: so has the kernel, where it routes to the node."""
        old, new = before.removesuffix("0/24"), after.removesuffix("0/24")
        self._fresh = json.loads(json.dumps(self._fresh).replace(f'"{old}', f'"{new}'))
        for state in self._fresh.values():
            if isinstance(state, dict):
                state["routes"].sort()

    # what must hold in the end

    def nothing_held(self) -> list[str]:
        found = [f"job {job.name} is {job.state}" for job in self.client.jobs.list() if job.state not in JOB_OVER]
        for node in self.client.nodes.list():
            if node.cpu_allocated or node.memory_allocated or node.gpu_allocated or node.allocations:
                found.append(f"node {node.name} holds {node.cpu_allocated} for {node.allocations}")
        found += [f"link {x.src}->{x.dst} holds {x.reserved}" for x in self.client.topology.links() if x.reserved]
        found += [f"worker {pid} is alive" for pid in self.worker_pids()]
        if found:
            return found  # the kernel is asked last: that takes a hundred calls of ip and tc
        state = self.kernel_state()
        for key, fresh in self._fresh.items():
            if state[key] != fresh:
                found.append(f"kernel: {key}: {fresh} has become {state[key]}")
        return found

    def check(self) -> None:
        """Everything is released, the log is right, and no worker lived twice or where it had no place. Where that is
        not so, what is left of jobs is cancelled: the next test needs the room."""
        try:
            self._check()
        except AssertionError:
            for job in self.ask(lambda: list(self.client.jobs.list())):
                if job.state not in JOB_OVER:
                    self.client.jobs.cancel(job.id)
            raise

    def _check(self) -> None:
        left: list[str] = []

        def settled() -> bool:
            left[:] = self.ask(self.nothing_held)
            return not left

        try:
            wait_for(settled, "everything is released", SETTLE_S, pause_s=0.25)
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(left)) from None
        books = self.books()
        lives = self.lives()
        wrong = [str(finding) for finding in books.findings]
        wrong += twice_alive(lives, books.allocations) + outside(lives, books.allocations)
        assert wrong == [], "\n".join(wrong)


def environments() -> Iterator[tuple[int, dict[str, str]]]:
    """The environment of every process of this machine, by its id."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                text = (entry / "environ").read_bytes().decode(errors="replace")
                yield int(entry.name), dict(part.partition("=")[::2] for part in text.split("\0"))


def _lines(namespace: str, *command: str) -> list[str]:
    """What a command prints inside a namespace; nothing where what it asks for has just gone."""
    command = ("ip", "netns", "exec", namespace, *command)
    return subprocess.run(command, capture_output=True, check=False, text=True).stdout.splitlines()


def _json(namespace: str, *command: str) -> list[dict[str, Any]]:
    return [entry for entry in json.loads("".join(_lines(namespace, *command)) or "[]") if entry]


def root() -> bool:
    return os.geteuid() == 0


@contextmanager
def running(
    name: str,
    folder: Path,
    topology: Topology,
    *,
    runtime: str = "process",
    timing: Timing = Timing(),
    database_url: str | None = None,
    network: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    managers: int = 1,
    schedulers: int = 1,
    underlay: Callable[[Cluster], AbstractContextManager[object]] = nullcontext,
) -> Iterator[FaultCluster]:
    """A cluster of its own, taken away at the end; its logs are shown where the test failed to start it. ``underlay``:
    what its hosts have beside their wires."""
    spec = ClusterSpec.model_validate(
        {
            "name": f"{name}{os.getpid()}",  # other runs of these tests may be under way on this machine
            "topology": topology,
            "runtime": runtime,
            "network": network or ("tc" if root() else "none"),
            "api_port": free_port(LOCALHOST, set()),
            "timing": timing,
            "database_url": database_url,
            "save_context": False,
            "settings": dict(settings),
            "managers": managers,
            "schedulers": schedulers,
        }
    )
    cluster = Cluster(spec, Files(folder))
    try:
        cluster.start()
        with underlay(cluster), cluster.client() as client:
            yield FaultCluster(cluster, client)
    finally:
        left = cluster.stop()
    assert left == [], left


def kill_worker(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def hops(path: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(path))
