"""The auditor's books: the state of the cluster, replayed event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ces_client.audit import plan_checks, promises
from ces_client.audit.cards import CardBooks
from ces_client.audit.cpu_amounts import amounts_of, cpu_held, wrong_start
from ces_client.audit.deadlines import Deadlines
from ces_client.audit.findings import NOWHERE, Findings
from ces_client.audit.former_words import in_present_words
from ces_client.audit.inventory import NOTHING, Amounts, Inventory, JobRequest
from ces_client.audit.lifecycle import OVER, PLACED, Allocation, Flow, Job, NextSize
from ces_client.audit.moves import Moves, Shared
from ces_client.audit.next_size import beyond
from ces_client.audit.nodes import Nodes
from ces_client.audit.reservations import Reservations
from ces_client.audit.step_checks import runs_twice, wrong_allocation_step, wrong_job_step, wrong_revision_step
from ces_client.audit.usage import Peak, Usage

Event = Mapping[str, Any]  # a CloudEvent, as parsed JSON


class Books:
    """The state of the cluster after the events read so far, and the ``findings`` of the audit. Give ``read`` every
    event in order, then call ``close``; more may be read after that. ``allocations`` includes ended ones.
    Where the oldest events were dropped, jobs that began before the log are not judged (``before``)."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._usage = Usage(inventory)
        self._reservations, self._cards = Reservations(), CardBooks()
        self.deadlines = Deadlines()
        found = Findings()
        self.findings, self._find, self._check, self._found = found.all, found.add, found.check, found
        self.jobs: dict[str, Job] = {}
        self.before: set[str] = set()
        self.allocations: dict[str, Allocation] = {}
        self.first: Event | None = None
        self.last: Event | None = None
        self.count = self.revisions = 0
        self.plans: set[str] = set()
        self._ids: set[str] = set()
        self._nodes = Nodes()
        self._addresses: Counter[tuple[str, int]] = Counter()
        self._numbers: Counter[int] = Counter()
        self._number = 0  # of the event that is being read
        self._time = ""
        self._revision: str | None = None  # whose events are being read
        kept = (self.allocations, self._addresses, self._numbers, self._usage)
        asked = (lambda nodes: self._nodes.wrong(nodes, self._late, self._usage), lambda: self._inventory.links)
        self._moves = Moves(Shared(*kept, self._check, self._hold, *asked))

    @property
    def peaks(self) -> Mapping[str, Peak]:
        """The highest use of each kind so far."""
        return self._usage.peaks

    @property
    def checked(self) -> dict[str, int]:
        """By kind of finding how much was checked so far."""
        others = {promises.DEADLINE: self.deadlines.checked, promises.RESERVATION: self._reservations.checked}
        return {**dict.fromkeys(promises.PROMISES, 0), **self._found.checked, **self._usage.checked, **others}

    def go_on(self, inventory: Inventory) -> None:
        """What the cluster has by now, for the events to come. Nodes tell of theirs in the log."""
        self._inventory = inventory
        self._usage.set_links(inventory)

    def read(self, event: Event) -> None:
        """Replays the next event. Raises KeyError, TypeError or ValueError if it lacks fields of its type."""
        number, data = int(event["sequence"]), in_present_words(event["data"])
        _, _, aggregate, kind = event["type"].split(".")
        revision = data["revision"] if (aggregate, kind) == ("plan", "revised") else None
        if self._revision not in (None, revision):  # a revision of several jobs is one event for each
            self._settle()
        self._revision = revision
        if self.last is not None and number != self._number + 1:
            self._found.of_log(number, f"follows event {self._number}: the log has a gap or a repetition")
        if event["id"] in self._ids:
            self._found.of_log(number, f"the id {event['id']} was used before")
        self._number, self._time = number, event["time"]
        self._found.read(number, data)
        self._ids.add(event["id"])
        self.first, self.last = self.first or event, event
        self.count += 1
        self._check(promises.DEADLINE, self.deadlines.read(aggregate, kind, data, self._time), 0)
        match aggregate, kind:
            case "plan", "committed":
                self._plan(data)
            case "plan", "revised":
                self._revised(data)
            case "resize", "committed":
                self._resize(data)
            case "move", _ if not self._began_before(data["job"]):
                self._moves.read(kind, self.jobs.setdefault(data["job"], Job()), data, self._time)
            case "cpu", "committed" | "released":
                self._cpu(kind, data)
            case "resize", "ended":
                self._resize_ended(data)
            case "job", _ if kind != "deadline":
                self._job(kind, data)
            case "allocation", _:
                self._allocation(kind, data)
            case "node", "changed":
                self._node(data)
            case ("link" | "topology", "changed"):
                self._reservations.disturb(self._time)
        if revision is None:
            self._settle()

    def close(self, *, finished: bool = True) -> None:
        """Ends the log. ``finished``: the cluster is idle, so every job must be over and nothing may be held."""
        self._settle()
        if not finished:
            return
        self._check(promises.HELD, (), len(self.jobs) + len(self.allocations))
        for name, job in self.jobs.items():
            if job.state not in OVER:
                self._find(promises.HELD, f"job {name} ends {job.state}", job=name, where=NOWHERE)
            if job.move is not None:
                self._find(promises.HELD, f"a task of job {name} still moves", job=name, where=NOWHERE)
            if job.flows:
                self._find(promises.HELD, f"job {name} still holds {len(job.flows)} flows", job=name, where=NOWHERE)
        for each in self.live():
            text = f"allocation {each.id} ({each.task}) ends {each.state}"
            self._find(promises.HELD, text, job=each.job, where=(each.node, None))

    def live(self) -> Iterator[Allocation]:
        """Allocations that hold capacity."""
        return (allocation for allocation in self.allocations.values() if allocation.live)

    def _settle(self) -> None:
        for kind, text, where in self._usage.settle(self._number, self._time):
            self._find(kind, text, where=where)

    @property
    def _late(self) -> bool:
        """Whether the log lacks its first events."""
        return self.first is not None and int(self.first["sequence"]) != 1

    def _node(self, data: Mapping[str, Any]) -> None:
        self._nodes.read(data)
        self._usage.set_node(data["node"], (data["cpu"], data["memory"], data["gpu"]))
        self._cards.set_node(data)
        self._reservations.disturb(self._time)

    # jobs

    def _job(self, kind: str, data: Mapping[str, Any]) -> None:
        name = data["job"]
        # Back in the queue it holds nothing: judged from here on.
        if kind == "queued" and self._late and name not in self.jobs:
            self.before.discard(name)
            self.jobs[name] = Job(data["name"], data.get("previous"), data["attempt"] - 1)
        if self._began_before(name):
            return
        job = self.jobs.setdefault(name, Job(data["name"]))
        if kind == "waiting":
            waits = job.state in ("queued", "suspended")
            self._check(promises.STEP, [] if waits else [f"job {name} waits but is {job.state}"])
            queue_status = data.get("queue_status") or {}
            if queue_status.get("reserved") and queue_status.get("start_at"):
                self._reservations.reserve(name, self._number, self._time, queue_status["start_at"])
            return
        state = data["state"]
        if kind != state:
            self._find(promises.LOG, f"says job.{kind} and {state}")
        states = [self.allocations[each].state for each in job.allocations]
        self._check(promises.STEP, wrong_job_step(name, job, data, states))
        before, job.state, job.attempt = job.state, state, data["attempt"]
        if state in OVER or state == "rescheduling":
            self._reservations.withdraw(name)
        if state == "suspended":
            self._suspend(name, job)
        elif (before, state) == ("suspended", "running"):
            self._resume(name, job)
        if state == "queued" and before is not None:
            live = [f"job {name} queues again while something of it is live"] if job.live else []
            self._check(promises.TWICE, live)
        self._release(job)

    def _began_before(self, name: str) -> bool:
        """Whether the job began before the log did; remembers it if so."""
        if self._late and name not in self.jobs:
            self.before.add(name)
        return name in self.before

    def _release(self, job: Job) -> None:
        """Frees the job's flows once no allocation of its attempt is live."""
        if job.state not in PLACED and not any(self.allocations[each].live for each in job.allocations):
            self._carry(job, {})

    def _carry(self, job: Job, flows: Mapping[int, Flow]) -> None:
        """Replaces the job's flows."""
        for sign, each in ((-1, job.flows), (1, flows)):
            for number, flow in each.items():
                self._usage.carry(flow["path"], sign * flow["rate"])
                self._numbers[number] += sign
        job.flows = dict(flows)

    # allocations

    def _allocation(self, kind: str, data: Mapping[str, Any]) -> None:
        if self._began_before(data["job"]):
            return
        known = self.allocations.get(data["allocation"])
        if known is None:
            self._check(promises.STEP, [f"allocation {data['allocation']} is in no plan"])
            return
        state, job = data["state"], self.jobs[known.job]
        who = f"allocation {known.id} ({known.task} on {known.node})"
        if kind != state:
            self._find(promises.LOG, f"says allocation.{kind} and {state}")
        if (data["job"], data["task"], data["node"]) != (known.job, known.task, known.node):
            self._find(promises.LOG, f"{who} is said to be {data['job']} {data['task']} on {data['node']}")
        self._check(promises.STEP, wrong_allocation_step(who, known, job, data))
        if state == "running":
            others = [self.allocations[each] for each in sorted(job.live)]
            self._check(promises.TWICE, runs_twice(who, known, others, job.move.old if job.move else None))
        was, known.state, known.incarnation = known.live, state, data["incarnation"]
        if known.live != was:
            self._hold(known, 1 if known.live else -1)
        if not known.live:
            known.until = self._time
        self._release(job)

    def _suspend(self, name: str, job: Job) -> None:
        """Its workers are frozen: they hold no CPU, and its flows no bandwidth."""
        request = self._request_of(name)
        if request is not None and request.suspendable is not None:
            refused = [] if request.suspendable else [f"job {name} is suspended, and its file does not let it be"]
            self._check(promises.REQUEST, refused)
        self._check(promises.HELD, ())
        if any(flow["rate"] for flow in job.flows.values()):
            self._find(promises.HELD, f"job {name} is suspended while its flows have bandwidth")
        for each in job.live:
            self.allocations[each].cpu = None
            self._hold_now(self.allocations[each], (0, *self.allocations[each].held[1:]))
        self._reservations.suspend(name, self._time)

    def _resume(self, name: str, job: Job) -> None:
        for each in job.live:
            self._hold_now(self.allocations[each], self._amounts(self.allocations[each]))
        self._check(promises.RESERVATION, self._reservations.resume(name, self._time), 0)

    def _amounts(self, allocation: Allocation) -> Amounts:
        request = self._request_of(allocation.job)
        return amounts_of(allocation, NOTHING if request is None else request.amounts(allocation.task))

    def _hold_now(self, allocation: Allocation, amounts: Amounts) -> None:
        """Replaces what the allocation holds."""
        cpu, memory, gpu = (now - before for now, before in zip(amounts, allocation.held, strict=True))
        self._usage.hold(allocation.node, (cpu, memory, gpu))
        allocation.held = amounts

    def _hold(self, allocation: Allocation, sign: int) -> None:
        job = self.jobs[allocation.job]
        self._hold_now(allocation, self._amounts(allocation) if sign > 0 else NOTHING)
        if sign > 0:
            job.live.add(allocation.id)
            return
        self._give_back(allocation)
        job.live.discard(allocation.id)
        if job.next is not None:
            self._hold_next(job, job.next)
        if not job.live and job.next is None:
            self._reservations.end(allocation.job, self._time)

    def _give_back(self, allocation: Allocation) -> None:
        self._addresses[allocation.address, allocation.port] -= 1
        self._cards.drop(allocation)

    # plans

    def _plan(self, data: Mapping[str, Any]) -> None:
        name = data["job"]
        if data["plan"] in self.plans:
            self._check(promises.STEP, [f"plan {data['plan']} is committed again"])
        self.plans.add(data["plan"])
        if self._began_before(name):
            return
        job = self.jobs.setdefault(name, Job())
        self._check(promises.STEP, ())
        self._check(promises.TWICE, [f"job {name} is planned while something of it is live"] if job.live else [])
        if job.state != "queued" or data["attempt"] != job.attempt:
            self._find(
                promises.STEP, f"a plan for attempt {data['attempt']} while {name} is {job.state} at {job.attempt}"
            )
        allocations = data.get("allocations", [])
        for made in self._made(name, data):
            self._hold(made, 1)
        job.allocations = [each["id"] for each in allocations]
        self._check(promises.RESERVATION, self._reservations.begin(name, self._time, self._request_of(name)), 0)
        self._carry(job, {flow["number"]: flow for flow in data.get("flows", [])})

    def _made(self, name: str, data: Mapping[str, Any]) -> list[Allocation]:
        """The allocations of a committed plan or resize, which is checked."""
        made = [Allocation.made(each, name, data["attempt"], self._time) for each in data.get("allocations", [])]
        tasks, places = [each.task for each in made], {each.task: each.node for each in made}
        nodes = dict.fromkeys(places.values())
        self._check(promises.READY, self._nodes.wrong(nodes, self._late, self._usage), len(nodes))
        for each in made:
            if self._addresses[each.address, each.port]:
                self._find(promises.ADDRESS, f"{each.task} gets {each.address}:{each.port}, which is in use")
            self.allocations[each.id] = each
            self._addresses[each.address, each.port] += 1
        request, flows, links = self._request_of(name), data.get("flows", []), self._inventory.links
        wrong = [*plan_checks.wrong_tasks(name, request, tasks), *wrong_start(name, request, made)]
        self._check(promises.REQUEST, wrong, request is not None)
        self._check(promises.CARD, self._cards.take(made, request), sum(len(each.cards or ()) for each in made))
        self._check(promises.ADDRESS, plan_checks.wrong_numbers(flows, self._numbers), len(made) + len(flows))
        self._check(promises.RATE, plan_checks.wrong_rates(flows), len(flows))
        self._check(promises.PATH, plan_checks.wrong_paths(places, flows, links), len(flows))
        return made

    # resizes

    def _resize(self, data: Mapping[str, Any]) -> None:
        name = data["job"]
        if self._began_before(name):
            return
        job = self.jobs.setdefault(name, Job())
        self._check(promises.STEP, ())
        if job.state != "running" or data["attempt"] != job.attempt + 1:
            self._find(
                promises.STEP, f"a resize to attempt {data['attempt']} while {name} is {job.state} at {job.attempt}"
            )
        made, now = self._made(name, data), (self.allocations[each] for each in job.allocations)
        sizes = (data["size"], data["before"])
        places = ({each.task: each.node for each in now}, {each.task: each.node for each in made})
        self._check(promises.REQUEST, plan_checks.wrong_size(name, self._request_of(name), *sizes, *places))
        job.next = NextSize(data["resize"], made, {flow["number"]: flow for flow in data.get("flows", [])})
        self._numbers.update(job.next.flows.keys())
        self._hold_next(job, job.next)

    def _hold_next(self, job: Job, coming: NextSize, *, whole: bool = True) -> None:
        """Holds what goes beyond what is left of the former size; nothing any more if not ``whole``."""
        nodes, links = beyond(job, coming, self.allocations, self._amounts) if whole else ({}, {})
        for name in nodes.keys() | coming.nodes.keys():
            pairs = zip(nodes.get(name, NOTHING), coming.nodes.get(name, NOTHING), strict=True)
            cpu, memory, gpu = (now - before for now, before in pairs)
            self._usage.hold(name, (cpu, memory, gpu))
        for hop in links.keys() | coming.links.keys():
            self._usage.carry(hop, links.get(hop, 0) - coming.links.get(hop, 0))
        coming.nodes, coming.links = nodes, links

    def _resize_ended(self, data: Mapping[str, Any]) -> None:
        name = data["job"]
        if self._began_before(name):
            return
        job = self.jobs.setdefault(name, Job())
        coming = job.next
        self._check(promises.STEP, ())
        if coming is None or coming.resize != data["resize"]:
            self._find(promises.STEP, f"a resize of {name} ends that was not committed")
            return
        self._hold_next(job, coming, whole=False)
        self._numbers.subtract(coming.flows.keys())
        job.next = None
        if not data["done"]:
            for made in coming.allocations:
                self._give_back(made)
                del self.allocations[made.id]
            return
        early = [f"job {name} has its new size while something of its former one is live"] if job.live else []
        self._check(promises.TWICE, early)
        self._carry(job, coming.flows)
        job.attempt, job.allocations = job.attempt + 1, [made.id for made in coming.allocations]
        for made in coming.allocations:
            self._hold(made, 1)

    def _revised(self, data: Mapping[str, Any]) -> None:
        name = data["job"]
        self.revisions += 1
        if self._began_before(name):
            return
        job = self.jobs.setdefault(name, Job())
        self._check(promises.STEP, wrong_revision_step(name, job, data))
        flows, known = data["flows"], plan_checks.known(job.flows, data["flows"])
        self._check(promises.ADDRESS, plan_checks.not_held(name, job.flows, flows), len(flows))
        self._check(promises.PATH, plan_checks.moved_ends(job.flows, known.values()), len(known))
        self._check(promises.RATE, plan_checks.wrong_rates(known.values(), data.get("short", [])), len(known))
        self._carry(job, {**job.flows, **known})

    def _cpu(self, kind: str, data: Mapping[str, Any]) -> None:
        name = data["job"]
        if self._began_before(name):
            return
        job = self.jobs.setdefault(name, Job())
        wrong, held = cpu_held(kind, job, self._request_of(name), self.allocations, data)
        self._check(promises.REQUEST if kind == "committed" else promises.STEP, wrong)
        for each, cpu in held:
            self._hold_now(each, (cpu, *each.held[1:]))

    def _request_of(self, job: str) -> JobRequest | None:
        return self._inventory.request_of(job, self.jobs[job].name)
