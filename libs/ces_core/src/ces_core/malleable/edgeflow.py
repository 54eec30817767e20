"""EdgeFlow: ElasticFlow in the cloud, and beside it idle edge servers, each of which runs one job slowly.

After 《软件学报》 36 (12), 2025, from p. 5481 on. Only part of the text was at hand: R1 and R2 are as it has them, in
an order that is our reading; of R3 only the candidates are known, and both ways to go on are our readings:

- R1: who is on an edge server stays while the server does. Of those whose server was taken back, who has least slack
  has the first choice of what is idle.
- R2: while GPUs are free in the cloud, each job that would meet its deadline on the edge goes there, in the order of
  deadlines.
- R3, where somebody misses: ``sacrifice`` sends jobs that are late there, so that the others are not; ``donate`` sends
  jobs there that would be in time, so that who is late has their GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ces_core.malleable.admission import Shares, shares_of
from ces_core.malleable.model import Running, by_deadline
from ces_core.malleable.policy import Decision, Moment
from ces_core.malleable.surplus import give_surplus

Reading = Literal["none", "overflow", "sacrifice", "donate"]
"""What uses edge servers: nothing, only jobs that would be refused otherwise, or R1 to R3 with either reading of R3."""


@dataclass(frozen=True)
class EdgeFlow:
    """``slot_s`` as for ElasticFlow. ``admission``: refuse who would make anybody late."""

    slot_s: float
    reading: Reading = "donate"
    admission: bool = True

    def __call__(self, moment: Moment) -> Decision:
        inside = moment.under_way if self.admission else list(moment.active)
        refused = set[str]()
        state = EdgePlan(moment, inside, self)
        for each in moment.active if self.admission else ():
            if each.name not in moment.arrived:
                continue
            asked = EdgePlan(moment, [*inside, each], self)
            if each.job.deadline_s < math.inf and asked.late - state.late:
                refused.add(each.name)
            else:
                inside, state = [*inside, each], asked
        give_surplus(state.cloud, state.shares, self.slot_s)
        sizes = {name: plan.size for name, plan in state.shares.plans.items() if plan.size}
        changes = [plan.next_change_s for plan in state.shares.plans.values()]
        promises = {name: tuple(plan.pieces()) for name, plan in state.shares.plans.items()}
        return Decision(sizes, frozenset(refused), min(changes, default=math.inf), state.servers, promises)


class EdgePlan:
    """Who is on which server and the minimum shares of the others, by R1 to R3. ``late``: names of who misses."""

    def __init__(self, moment: Moment, active: Sequence[Running], rules: EdgeFlow) -> None:
        self.moment, self.slot_s = moment, rules.slot_s
        self.active = by_deadline(active)
        self.servers: dict[str, int] = {}
        self.idle = dict(moment.servers)
        if rules.reading != "none":
            self._stay()
        self._plan()
        if rules.reading == "overflow":
            self._overflow()
        elif rules.reading != "none":
            self._move_who_can()
            self._help(rules.reading)

    @property
    def cloud(self) -> list[Running]:
        return [each for each in self.active if each.name not in self.servers]

    @property
    def late(self) -> set[str]:
        edge = {each.name for each in self.active if each.name in self.servers and self.slack_s(each) < 0}
        return edge | set(self.shares.late)

    def slack_s(self, each: Running, speed: float | None = None) -> float:
        """Seconds between its end on its edge server, or on one of this speed, and its deadline."""
        server = self.servers.get(each.name, -1)
        speed = self.moment.servers[server] if speed is None else speed
        if not speed or 1 not in each.job.speeds.sizes:
            return -math.inf
        return each.job.deadline_s - self.moment.now_s - each.left / (speed * each.job.speeds.rate(1))

    def _plan(self) -> None:
        self.shares: Shares = shares_of(self.cloud, self.moment.now_s, self.moment.capacity, self.slot_s)

    def _put(self, each: Running, server: int) -> None:
        self.servers[each.name] = server
        del self.idle[server]

    def _best_server(self, each: Running) -> int:
        """The slowest idle server on which it is in time; -1 if there is none, or it does not fit there."""
        in_time = [
            (speed, server)
            for server, speed in self.idle.items()
            if each.job.memory <= 1.0 and self.slack_s(each, speed) >= 0
        ]
        return min(in_time)[1] if in_time else -1

    def _stay(self) -> None:
        """R1."""
        for each in self.active:
            if each.server in self.idle:
                self._put(each, each.server)
        speed = max(self.moment.servers.values(), default=0.0)
        displaced = [each for each in self.active if each.server >= 0 and each.name not in self.servers]
        for each in sorted(displaced, key=lambda each: self.slack_s(each, speed)):
            if (server := self._best_server(each)) >= 0:
                self._put(each, server)

    def _move_who_can(self) -> None:
        """R2."""
        before = len(self.servers)
        for each in self.cloud:
            if not self.idle or not self.shares.free_now:
                break
            if (server := self._best_server(each)) >= 0:
                self._put(each, server)
        if len(self.servers) > before:
            self._plan()

    def _help(self, reading: Reading) -> None:
        """R3: one job after the other, as long as it makes fewer miss."""
        while self.idle and self.shares.late:
            movers = self._late_ones() if reading == "sacrifice" else self._donors()
            before = len(self.late)
            for each, server in movers:
                self._put(each, server)
                self._plan()
                if len(self.late) < before:
                    break
                self.idle[server] = self.moment.servers[server]
                del self.servers[each.name]
            else:
                self._plan()
                return

    def _late_ones(self) -> list[tuple[Running, int]]:
        """Who is late in the cloud and below its cap, in the order of deadlines, with the fastest idle server."""
        server = max(self.idle, key=lambda number: self.idle[number])
        late = set(self.shares.late)
        return [
            (each, server)
            for each in self.cloud
            if each.name in late and each.job.memory <= 1.0 and self.shares.plans[each.name].size < each.profile.cap
        ]

    def _donors(self) -> list[tuple[Running, int]]:
        """Who is in time in the cloud and would be on the edge, the largest first, with the server."""
        late = set(self.shares.late)
        able = [(each, self._best_server(each)) for each in self.cloud if each.name not in late]
        found = [(each, server) for each, server in able if server >= 0]
        return sorted(found, key=lambda one: -self.shares.plans[one[0].name].gpu_s())

    def _overflow(self) -> None:
        """Newcomers that would be late, or make others late, and are in time on the edge."""
        for each in self.cloud:
            if self.shares.late and each.name in self.moment.arrived and (server := self._best_server(each)) >= 0:
                self._put(each, server)
                self._plan()
