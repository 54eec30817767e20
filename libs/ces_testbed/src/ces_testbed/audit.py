"""An auditor: reads a cluster's event log from its first line to its last and says what was not right.

It shares nothing with the services, not even their models: it replays plain JSON and keeps books of its own. So it
finds what a mistake in the manager's checks, or in its tables of states, would let pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Event = Mapping[str, Any]  # a CloudEvent, as parsed JSON
Hop = tuple[str, str]

RESERVABLE = 0.95  # share of a link that plans may give away
RESERVABLE_OF_TUNNELS = 0.90  # of a medium that tunnels share
_RUNS = {"starting", "running", "paused"}
_PLACED = {"planned", "preparing"} | _RUNS
_OVER = {"succeeded", "failed", "cancelled"}
_JOB_STEPS = {
    None: {"queued"},
    "queued": {"planned", "failed", "cancelled"},
    "planned": {"preparing", "rescheduling", "failed", "cancelled"},
    "preparing": {"starting", "rescheduling", "failed", "cancelled"},
    "starting": {"running", "rescheduling", "failed", "cancelled"},
    "running": {"starting", "paused", "succeeded", "rescheduling", "failed", "cancelled"},
    "paused": {"running", "rescheduling", "failed", "cancelled"},
    "rescheduling": {"queued", "failed", "cancelled"},
}
_ENDED = {"succeeded", "failed", "stopped", "lost"}
_ALLOCATION_STEPS = {
    None: {"pending"},
    "pending": {"pending", "running", "stopping"} | _ENDED,
    "running": {"pending", "stopping"} | _ENDED,
    "stopping": {"stopped", "lost"},
}


@dataclass(frozen=True)
class Ground:
    """What the log does not tell: links and media with their capacity in bit/s, the media that tunnels share, and what
    each job asked for."""

    links: Mapping[Hop, int] = field(default_factory=dict)
    media: Mapping[str, int] = field(default_factory=dict)
    medium_of: Mapping[Hop, str] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, tuple[int, int, int]]] = field(default_factory=dict)
    """Job -> task -> millicores, bytes, GPUs."""
    tunnelled: Set[str] = frozenset()


@dataclass
class Job:
    state: str | None = None
    attempt: int = 0
    allocations: list[str] = field(default_factory=list)  # of the present attempt
    flows: list[Mapping[str, Any]] = field(default_factory=list)  # held


@dataclass
class Allocation:
    """``since`` and ``until`` are the times of the log at which it began and ceased to hold its capacity."""

    id: str
    job: str
    task: str
    node: str
    address: str
    port: int
    since: str
    attempt: int
    state: str | None = None
    incarnation: int = 0
    until: str | None = None

    @property
    def live(self) -> bool:
        return self.state not in _ENDED


def audit(events: Iterable[Event], ground: Ground, *, finished: bool = True) -> list[str]:
    """What is wrong with a log, each with the number of the event that shows it; empty where nothing is.

    ``finished``: nothing runs any more, so every job must be over and nothing may be held.
    """
    books = Books(ground)
    for event in events:
        books.read(event)
    if finished:
        books.close()
    return books.findings


class Books:
    """All that holds at one moment of the log. ``allocations`` keeps those that ended, too."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.findings: list[str] = []
        self.jobs: dict[str, Job] = defaultdict(Job)
        self.allocations: dict[str, Allocation] = {}
        self._nodes: dict[str, dict[str, Any]] = {}
        self._plans: set[str] = set()
        self._ids: set[str] = set()
        self._sequence = 0
        self._revision: str | None = None  # whose events are being read

    def read(self, event: Event) -> None:
        number, data = int(event["sequence"]), event["data"]
        if number != self._sequence + 1:
            self._find(number, f"follows event {self._sequence}: the log has a gap or a repetition")
        if event["id"] in self._ids:
            self._find(number, f"the id {event['id']} was used before")
        self._sequence = number
        self._ids.add(event["id"])
        _, _, aggregate, kind = event["type"].split(".")
        revision = data["revision"] if (aggregate, kind) == ("plan", "revised") else None
        if self._revision not in (None, revision):  # that of several jobs is one event for each
            self._check_links(number - 1)
        self._revision = revision
        match aggregate, kind:
            case "plan", "committed":
                self._plan(number, event["time"], data)
            case "plan", "revised":
                self._revised(number, data)
            case "job", "waiting":
                if self.jobs[data["job"]].state != "queued":
                    self._find(number, f"job {data['job']} waits but is {self.jobs[data['job']].state}")
            case "job", _:
                self._job(number, kind, data)
            case "allocation", _:
                self._allocation(number, kind, event["time"], data)
            case "node", "changed":
                self._node(data)

    def close(self) -> None:
        for name, job in self.jobs.items():
            if job.state not in _OVER:
                self._find(self._sequence, f"job {name} ends {job.state}")
            if job.flows:
                self._find(self._sequence, f"job {name} still holds {len(job.flows)} flows")
        for allocation in self.allocations.values():
            if allocation.live:
                self._find(self._sequence, f"allocation {allocation.id} ({allocation.task}) ends {allocation.state}")

    def _find(self, number: int, text: str) -> None:
        self.findings.append(f"event {number}: {text}")

    def _live(self) -> Iterator[Allocation]:
        return (allocation for allocation in self.allocations.values() if allocation.live)

    def _node(self, data: Mapping[str, Any]) -> None:
        node = self._nodes.setdefault(data["node"], {"state": "unreachable", "cordoned": False})
        node.update({key: data[key] for key in ("cpu", "memory", "gpu")})
        change = data["change"]
        if change in ("ready", "unreachable"):
            node["state"] = change
        elif change in ("cordoned", "uncordoned", "drained"):
            node["cordoned"] = change != "uncordoned"

    # jobs

    def _job(self, number: int, kind: str, data: Mapping[str, Any]) -> None:
        name, state = data["job"], data["state"]
        job = self.jobs[name]
        if kind != state:
            self._find(number, f"says job.{kind} and {state}")
        if data.get("previous") != job.state:
            self._find(number, f"job {name} comes from {data.get('previous')} but was {job.state}")
        if state not in _JOB_STEPS.get(job.state, set()):
            self._find(number, f"job {name} goes from {job.state} to {state}")
        expected = job.attempt + (state == "queued")
        if data["attempt"] != expected:
            self._find(number, f"job {name} is at attempt {data['attempt']}, not {expected}")
        job.state, job.attempt = state, data["attempt"]
        states = [self.allocations[each].state for each in job.allocations]
        if state == "queued" and any(self.allocations[each].live for each in job.allocations):
            self._find(number, f"job {name} queues again while something of it is live")
        if state == "running" and not set(states) <= {"running", "succeeded"}:
            self._find(number, f"job {name} runs while its tasks are {states}")
        if state == "succeeded" and set(states) != {"succeeded"}:
            self._find(number, f"job {name} succeeds while its tasks are {states}")
        self._release(job)

    def _release(self, job: Job) -> None:
        """Flows are held until nothing of the attempt is live any more."""
        if job.state not in _PLACED and not any(self.allocations[each].live for each in job.allocations):
            job.flows = []

    # allocations

    def _allocation(self, number: int, kind: str, time: str, data: Mapping[str, Any]) -> None:
        known = self.allocations.get(data["allocation"])
        if known is None:
            self._find(number, f"allocation {data['allocation']} is in no plan")
            return
        state, job = data["state"], self.jobs[known.job]
        who = f"allocation {known.id} ({known.task} on {known.node})"
        if kind != state:
            self._find(number, f"says allocation.{kind} and {state}")
        if (data["job"], data["task"], data["node"]) != (known.job, known.task, known.node):
            self._find(number, f"{who} is said to be {data['job']} {data['task']} on {data['node']}")
        if data.get("previous") != known.state:
            self._find(number, f"{who} comes from {data.get('previous')} but was {known.state}")
        if state not in _ALLOCATION_STEPS.get(known.state, set()):
            self._find(number, f"{who} goes from {known.state} to {state}")
        expected = known.incarnation + (state == "pending")
        if data["incarnation"] != expected:
            self._find(number, f"{who} is at incarnation {data['incarnation']}, not {expected}")
        if state == "running" and job.state not in _RUNS:
            self._find(number, f"{who} runs while its job is {job.state}")
        if known.id not in job.allocations:
            self._find(number, f"{who} belongs to an attempt that is over")
        known.state, known.incarnation = state, data["incarnation"]
        if not known.live:
            known.until = time
        self._release(job)

    # plans

    def _plan(self, number: int, time: str, data: Mapping[str, Any]) -> None:
        name = data["job"]
        job = self.jobs[name]
        if data["plan"] in self._plans:
            self._find(number, f"plan {data['plan']} is committed again")
        self._plans.add(data["plan"])
        if job.state != "queued" or data["attempt"] != job.attempt:
            self._find(number, f"a plan for attempt {data['attempt']} while {name} is {job.state} at {job.attempt}")
        if any(self.allocations[each].live for each in job.allocations):
            self._find(number, f"job {name} is planned while something of it is live")
        allocations = data.get("allocations", [])
        self._check_tasks(number, name, [each["task"] for each in allocations])
        addresses = Counter((each.address, each.port) for each in self._live())
        for each in allocations:
            if addresses[each["address"], each["port"]]:
                self._find(number, f"{each['task']} gets {each['address']}:{each['port']}, which is in use")
            addresses[each["address"], each["port"]] += 1
            self.allocations[each["id"]] = Allocation(
                each["id"], name, each["task"], each["node"], each["address"], each["port"], time, data["attempt"]
            )
        job.allocations = [each["id"] for each in allocations]
        self._check_flows(number, {each["task"]: each["node"] for each in allocations}, data.get("flows", []))
        job.flows = list(data.get("flows", []))
        self._check_nodes(number, {each["node"] for each in allocations})
        self._check_links(number)

    def _revised(self, number: int, data: Mapping[str, Any]) -> None:
        name = data["job"]
        job = self.jobs[name]
        if job.state not in _PLACED or data["attempt"] != job.attempt:
            self._find(number, f"attempt {data['attempt']} is revised while {name} is {job.state} at {job.attempt}")
        held = {flow["number"]: flow for flow in job.flows}
        short = {(flow["src"], flow["dst"]) for flow in data.get("short", [])}
        for flow in data["flows"]:
            who, before = f"flow {flow['src']} -> {flow['dst']}", held.get(flow["number"])
            if before is None or (before["src"], before["dst"]) != (flow["src"], flow["dst"]):
                self._find(number, f"{who} of {name} is revised, which does not hold number {flow['number']}")
                continue
            if (before["path"][0], before["path"][-1]) != (flow["path"][0], flow["path"][-1]):
                self._find(number, f"{who} goes by {flow['path']} now, its tasks are elsewhere")
            least = 0 if (flow["src"], flow["dst"]) in short else flow["min"]
            if not least <= flow["bandwidth"] <= flow["max"]:
                self._find(number, f"{who} gets {flow['bandwidth']}, outside of {least} to {flow['max']}")
            held[flow["number"]] = flow
        job.flows = list(held.values())

    def _check_tasks(self, number: int, name: str, tasks: Sequence[str]) -> None:
        asked = self._ground.tasks.get(name)
        if asked is not None and sorted(asked) != sorted(tasks):
            self._find(number, f"job {name} asks for {sorted(asked)}, the plan has {sorted(tasks)}")

    def _check_flows(self, number: int, places: Mapping[str, str], flows: Sequence[Mapping[str, Any]]) -> None:
        held = {flow["number"] for job in self.jobs.values() for flow in job.flows}
        for flow in flows:
            who = f"flow {flow['src']} -> {flow['dst']}"
            if flow["number"] in held:
                self._find(number, f"{who} gets number {flow['number']}, which is in use")
            held.add(flow["number"])
            if not flow["min"] <= flow["bandwidth"] <= flow["max"]:
                self._find(number, f"{who} gets {flow['bandwidth']}, outside of {flow['min']} to {flow['max']}")
            path, src = flow["path"], flow["src"]
            first = src[1:] if src.startswith("@") else places.get(src)  # a node's own data, or what a task sends
            if not path or (path[0], path[-1]) != (first, places.get(flow["dst"])):
                self._find(number, f"{who} goes by {path}, its tasks are elsewhere")
            for hop in pairwise(path):
                if hop not in self._ground.links:
                    self._find(number, f"{who} uses {hop[0]} -> {hop[1]}, which is no link")

    def _check_nodes(self, number: int, fresh: set[str]) -> None:
        used: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for allocation in self._live():
            asked = self._ground.tasks.get(allocation.job, {}).get(allocation.task, (0, 0, 0))
            used[allocation.node] = [a + b for a, b in zip(used[allocation.node], asked, strict=True)]
        for name, amounts in used.items():
            node = self._nodes.get(name)
            if node is None:
                self._find(number, f"node {name} has never joined")
                continue
            if name in fresh and (node["state"] != "ready" or node["cordoned"]):
                self._find(number, f"node {name} gets work while {node['state']}, cordoned {node['cordoned']}")
            for what, amount in zip(("cpu", "memory", "gpu"), amounts, strict=True):
                if amount > node[what]:
                    self._find(number, f"node {name} has {what} {node[what]}, {amount} is held: overbooked")

    def _check_links(self, number: int) -> None:
        links, media = Counter[Hop](), Counter[str]()
        for job in self.jobs.values():
            for flow in job.flows:
                for hop in pairwise(flow["path"]):
                    links[hop] += flow["bandwidth"]
                    if hop in self._ground.medium_of:
                        media[self._ground.medium_of[hop]] += flow["bandwidth"]
        for hop, amount in links.items():
            if amount > self._ground.links.get(hop, 0) * RESERVABLE:
                self._find(
                    number, f"link {hop[0]} -> {hop[1]}: {amount} of {self._ground.links.get(hop)} is overbooked"
                )
        for medium, amount in media.items():
            share = RESERVABLE_OF_TUNNELS if medium in self._ground.tunnelled else RESERVABLE
            if amount > self._ground.media[medium] * share:
                self._find(number, f"medium {medium}: {amount} of {self._ground.media[medium]} is overbooked")
