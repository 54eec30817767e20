"""The clock of malleable jobs: it asks a policy whenever something happens, and counts what that costs and brings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ces_core.malleable.buddy import keep_places
from ces_core.malleable.model import MalleableJob, Running
from ces_core.malleable.policy import Decision, Moment, Policy
from ces_sim.malleable.cost import resize_s
from ces_sim.malleable.outcome import ElasticOutcome, JobFate

DONE = 1e-9
"""Share of a job's work that may be left when it is done: rounding."""


class BrokenPolicyError(RuntimeError):
    """A policy has decided what cannot be."""


@dataclass(frozen=True)
class World:
    """``capacity``: GPUs in the cloud. ``costs``: starts and resizes take time. ``edge``: times from which other edge
    servers are idle, with their numbers, ascending; ``speeds``: of each server that is ever idle, by that of one GPU.
    ``believed``: the speed of a server that no job has run on. ``gather_s``: the least time between two
    questions to the policy; what happens meanwhile waits. ``pay_always``: every job under way pays whenever the policy
    is asked."""

    capacity: int
    costs: bool = True
    edge: Sequence[tuple[float, frozenset[int]]] = ()
    speeds: Mapping[int, float] = field(default_factory=dict)
    believed: float = 0.0
    gather_s: float = 0.0
    pay_always: bool = False


def simulate(jobs: Sequence[MalleableJob], policy: Policy, world: World) -> ElasticOutcome:
    """All jobs until the last has ended. Raises BrokenPolicyError where the policy gives out more than there is, or
    leaves jobs waiting for ever."""
    return _Clock(jobs, policy, world).run()


@dataclass(eq=False)
class _Live:
    running: Running
    fate: JobFate
    ready_s: float = 0.0
    rate: float = 0.0
    on_edge: bool = False

    def end_s(self, now_s: float) -> float:
        return max(now_s, self.ready_s) + self.running.left / self.rate if self.rate else math.inf


class _Clock:
    def __init__(self, jobs: Sequence[MalleableJob], policy: Policy, world: World) -> None:
        self.policy, self.world = policy, world
        self.fates = [JobFate(job) for job in sorted(jobs, key=lambda job: job.arrived_s)]
        self.next = 0
        self.live: dict[str, _Live] = {}
        self.now = 0.0
        self.ask_s, self.asked_s = math.inf, -math.inf
        self.places: dict[str, int] = {}
        self.edge = list(world.edge)
        self.idle: frozenset[int] = frozenset()
        self.known: dict[int, float] = {}

    def run(self) -> ElasticOutcome:
        while self.next < len(self.fates) or self.live:
            at = self._next_time()
            if math.isinf(at):
                raise BrokenPolicyError(f"{len(self.live)} jobs wait for ever: {', '.join(sorted(self.live)[:5])}")
            self._pass(at)
            arrived = self._arrive()
            while self.edge and self.edge[0][0] <= self.now:
                self.idle = self.edge.pop(0)[1]
            self._decide(arrived)
        return ElasticOutcome(self.fates)

    def _next_time(self) -> float:
        arrival = self.fates[self.next].job.arrived_s if self.next < len(self.fates) else math.inf
        change = self.edge[0][0] if self.edge and self.live else math.inf
        ends = min((live.end_s(self.now) for live in self.live.values()), default=math.inf)
        return max(self.now, self.asked_s + self.world.gather_s, min(arrival, change, ends, self.ask_s))

    def _pass(self, at: float) -> None:
        """Everybody works until then; who is done leaves."""
        for name, live in list(self.live.items()):
            running, fate = live.running, live.fate
            if running.size or running.server >= 0:
                end = live.end_s(self.now)
                ran = min(at, end) - self.now
                running.ran_s += ran
                running.attained += ran * running.size
                fate.gpu_s += ran * running.size
                fate.edge_s += ran * (running.server >= 0)
                running.left -= live.rate * max(0.0, at - max(self.now, live.ready_s))
                if running.left <= DONE * running.job.work:
                    fate.ended_s = min(at, end)
                    del self.live[name]
                    self.places.pop(name, None)
        self.now = at

    def _arrive(self) -> frozenset[str]:
        arrived = set()
        while self.next < len(self.fates) and self.fates[self.next].job.arrived_s <= self.now:
            fate = self.fates[self.next]
            self.next += 1
            self.live[fate.job.name] = _Live(Running(fate.job, fate.job.work), fate)
            arrived.add(fate.job.name)
        return frozenset(arrived)

    def _decide(self, arrived: frozenset[str]) -> None:
        servers = {number: self.known.get(number, self.world.believed) for number in sorted(self.idle)}
        active = [live.running for live in self.live.values()]
        decision = self.policy(Moment(self.now, self.world.capacity, active, arrived, servers))
        self._check(decision, arrived)
        self.ask_s = decision.until_s if decision.until_s > self.now else math.inf
        self.asked_s = self.now
        for name in decision.refused:
            self.live.pop(name).fate.refused = True
        begins = keep_places(decision.sizes, self._unchanged(decision), self.world.capacity)
        for name, live in self.live.items():
            live.running.promise = decision.promises.get(name, ())
            self._apply(live, decision.sizes.get(name, 0), decision.servers.get(name, -1), begins.get(name, -1))
        self.places = begins

    def _unchanged(self, decision: Decision) -> dict[str, int]:
        return {
            name: begin
            for name, begin in self.places.items()
            if decision.sizes.get(name, 0) == self.live[name].running.size
        }

    def _check(self, decision: Decision, arrived: frozenset[str]) -> None:
        if (given := sum(decision.sizes.values())) > self.world.capacity:
            raise BrokenPolicyError(f"{given} GPUs given out, {self.world.capacity} there")
        if not decision.refused <= arrived:
            raise BrokenPolicyError(f"refused after their arrival: {sorted(decision.refused - arrived)}")
        used = list(decision.servers.values())
        if len(set(used)) < len(used) or not set(used) <= self.idle:
            raise BrokenPolicyError(f"edge servers {sorted(used)} used, {sorted(self.idle)} idle")
        if both := decision.servers.keys() & decision.sizes.keys():
            raise BrokenPolicyError(f"both in the cloud and on the edge: {sorted(both)}")

    def _apply(self, live: _Live, size: int, server: int, begin: int) -> None:
        running, fate = live.running, live.fate
        same = (running.size, running.server, self.places.get(running.name, -1)) == (size, server, begin)
        if same and not self.world.pay_always:
            return
        running.size, running.server = size, server
        if size or server >= 0:
            self._pay(live, same)
            fate.resizes += not same and fate.started_s is not None
            fate.crossings += fate.started_s is not None and (server >= 0) != live.on_edge
            fate.started_s = self.now if fate.started_s is None else fate.started_s
            live.on_edge = server >= 0
        live.rate = running.job.speeds.rate(size)
        if server >= 0:
            live.rate = self.world.speeds[server] * running.job.speeds.rate(1)
            self.known[server] = self.world.speeds[server]

    def _pay(self, live: _Live, same: bool) -> None:
        """Seconds without work, from now on: those of an earlier change are not paid twice."""
        cost = resize_s(live.running.size or 1, self.world.capacity, warm=same) if self.world.costs else 0.0
        if cost:
            live.ready_s = self.now + cost
            live.fate.cost_s += cost
