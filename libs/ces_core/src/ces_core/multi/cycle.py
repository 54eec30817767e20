"""One cycle of the queue: who starts now, who has room kept, and why the others wait.

Overdue jobs come first, the oldest before all; those that have no place have room kept for them, so many at most. Then
the others, best score first, scored anew after every start, since what is free has changed. Whoever has no place is
passed over, and may start later only where no reservation is delayed by it. At last, where that is wanted, running jobs
make room for more urgent ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ces_core.ledger import TOLERANCE, cells_of
from ces_core.multi.explaining import Standing, standings
from ces_core.multi.fitting import screened
from ces_core.multi.jobs import RunningJob, WaitingJob, whose
from ces_core.multi.ordering import firsts, flooded, ranks
from ces_core.multi.outlook import Outlook, end_of
from ces_core.multi.parameters import Parameters
from ces_core.multi.preempting import MOMENTS_S, names_of, preempt, starts_soon, victims_of
from ces_core.multi.promises import Promises
from ces_core.multi.reservations import Reservation, Solve, renew, reserve
from ces_core.multi.scoring import Table
from ces_core.multi.screening import Room
from ces_core.multi.shares import Shares, amounts_of, free_of
from ces_core.multi.sparing import satisfaction, spared
from ces_core.multi.state import Decisions, Memory, Refusal, Start, State, Unmoved
from ces_core.plan import Plan, Result
from ces_core.problem import Cluster
from ces_core.reason import Reason

FITTING = frozenset({"quota", "poor-bandwidth"})
"""Reasons why a job waits though there is room for it."""
UNTRIED = Unmoved(-1, ())


def cycle(state: State, parameters: Parameters, solve: Solve, sparing: Solve | None = None) -> Decisions:
    """``sparing``: the solver that is asked where the cluster is crowded, one that counts what room a plan leaves for
    later jobs; None: the same, and being crowded changes nothing. Room that is kept, and what a job could have on the
    empty cluster, is always found by ``solve``.

    Raises ProblemError for a job of a tenant that there is not, OverCapacityError where a plan does not fit."""
    return _Cycle(state, parameters, solve, sparing or solve).run()


class _Cycle:
    def __init__(self, state: State, parameters: Parameters, solve: Solve, sparing: Solve) -> None:
        self._state, self._parameters = state, parameters
        self._solve, self._sparing = screened(solve), screened(sparing)
        self._ledger = state.ledger.copy()
        running = sorted(state.running, key=lambda job: (job.started_s, job.name))
        self._outlook = Outlook(self._ledger, running, state.now_s)
        self._shares = Shares(parameters, self._ledger, running, state.waiting)
        self._promises = Promises(self._ledger, self._outlook, self._shares, running)
        jobs = sorted(state.waiting, key=lambda job: (job.submitted_s, job.name))
        self._table = Table(jobs, state.now_s)
        self._line = {job.name: line for line, job in enumerate(jobs)}
        self._overdue = self._table.waited >= parameters.overdue_s
        self._ranks = ranks(self._table, parameters.preemption)
        self._left = self._turn = np.ones(len(jobs), dtype=np.bool_)
        self._fits = self._left
        same = self._line.keys() - state.changed
        self._known = {
            name: refusal
            for name, refusal in state.memory.refusals.items()
            if name in same and (refusal.forever or (refusal.freed == state.freed and state.now_s < refusal.until_s))
        }
        self._tries = math.inf if parameters.window is None else parameters.window
        self._most = math.inf if parameters.starts is None else parameters.starts
        self._ways = len(jobs) if parameters.window is None else parameters.window
        self._more = False
        self._refused: dict[str, Reason] = {}
        self._unmoved = {name: each for name, each in state.memory.unmoved.items() if name in same}
        self._starts: list[Start] = []
        self._look()
        self._never = self._hopeless()
        self._able = np.array([job.name not in self._never for job in jobs], dtype=np.bool_)
        self._refused.update(self._never)

    def run(self) -> Decisions:
        for rank in sorted({*self._ranks.tolist()}, reverse=True):
            self._turn = self._ranks == rank
            self._renew_reservations()
            for job in self._overdue_first():
                if not self._start(job):
                    self._keep_room(job)
            while any(self._start(self._table.jobs[line]) for line in self._candidates()):
                pass
            self._make_way()
        refusals, unmoved = MappingProxyType(dict(self._known)), MappingProxyType(self._unmoved)
        return Decisions(
            tuple(self._starts),
            Memory(self._state.freed, tuple(self._promises.kept.values()), refusals, unmoved),
            MappingProxyType(self._refused),
            MappingProxyType(self._promises.untold_of_all()),
            self._more,
            self._explained,
        )

    def _look(self) -> None:
        """Score all by what is free now. Within a cycle that only becomes less, so who did not fit does not fit."""
        self._fits = Room.of(self._ledger.cluster).holds(self._table, self._fits & self._left)
        free, against = free_of(self._ledger.cluster), self._shares.against_fair()
        self._scores = self._table.scores(self._parameters, free, against)
        order = np.lexsort((np.arange(len(self._left)), -self._scores.parts.sum(axis=1)))
        self._newcomers = firsts(self._table, self._shares, order.tolist(), self._left)
        ahead = self._newcomers & self._flooded()  # a flood holds up nobody's first
        group = np.where(self._overdue, 0, np.where(ahead, 1, 2))
        age = np.where(self._overdue, np.arange(len(self._left)), 0)
        order = order[np.lexsort((age[order], group[order], -self._ranks[order]))]
        self._order: list[int] = order[self._left[order]].tolist()

    def _hopeless(self) -> dict[str, Reason]:
        """Those that will never have a place, as far as that is seen without a solver."""
        found = {}
        room = Room.of(self._ledger.base)
        doubtful = self._left & ~self._fits  # who fits now fits the empty cluster
        for line in np.flatnonzero(doubtful & ~room.holds(self._table, doubtful)).tolist():
            reason = room.hindrance(self._table, line, permanent=True)
            if reason is not None:
                found[self._table.jobs[line].name] = reason
        limited = np.array([self._shares.limited(name) for name in self._table.tenants], dtype=np.bool_)
        for line in np.flatnonzero(limited[self._table.tenant]).tolist():
            job = self._table.jobs[line]
            beyond = self._beyond_quota(job)
            if beyond is not None and beyond.permanent:
                found[job.name] = beyond
        return found

    def _flooded(self) -> NDArray[np.bool_]:
        """(jobs,): those whom a flood of others' would keep from being tried."""
        if self._parameters.window is None or not self._newcomers.any():
            return np.zeros(len(self._left), dtype=np.bool_)
        refused = np.array([job.name in self._known for job in self._table.jobs], dtype=np.bool_)
        return flooded(self._table, self._parameters.window, self._fits & ~self._overdue & ~refused)

    def _overdue_first(self) -> Iterator[WaitingJob]:
        """Those that were promised room in the order of the promises, then by age."""
        promised = [self._line[each.job] for each in self._promised()]
        for line in dict.fromkeys([*promised, *np.flatnonzero(self._overdue & self._turn).tolist()]):
            yield self._table.jobs[line]

    def _candidates(self) -> list[int]:
        """Those not overdue that may have a place, best first."""
        open_to = self._fits & ~self._overdue & self._turn
        return [line for line in self._order if open_to[line] and self._table.jobs[line].name not in self._known]

    def _has_turn(self, line: int) -> bool:
        """Whether the window reaches the job. It always reaches the first of a tenant of which nothing runs, so that
        nobody's flood uses it up before."""
        reached = self._tries > 0 or bool(self._newcomers[line])
        self._more |= not reached
        return reached

    def _start(self, job: WaitingJob) -> bool:
        """Whether the job had a place and has started."""
        if len(self._starts) >= self._most:
            self._more = True
            return False
        line = self._line[job.name]
        kept = self._promises.take(job)
        plan = self._plan(job, line)
        if (
            plan is None
            and kept is not None
            and kept.begin <= self._outlook.now
            and not self._over_quota(job, kept.plan)
        ):
            plan = kept.plan  # the solver may not find again what was found then
        if plan is None:
            if kept is not None:
                self._promises.keep(job, kept)
            return False
        position = self._order.index(line) + 1
        score = self._scores.of(line)
        self._starts.append(Start(job.name, plan, position, score, bool(self._overdue[line]), kept is not None))
        self._ledger.hold(job.name, job.problem, plan)
        running = RunningJob(job.name, self._state.now_s, job.tenant, job.expected_s)
        self._outlook.start(running, self._ledger.held(job.name))
        self._shares.take(job.tenant, amounts_of(self._ledger.held(job.name)))
        self._left[line] = False
        self._known.pop(job.name, None)
        self._look()
        return True

    def _plan(self, job: WaitingJob, line: int) -> Plan | None:
        """A place for the job now, beside all that room is kept for."""
        if not self._fits[line] or job.name in self._known or not self._has_turn(line):
            return None
        if self._beyond_quota(job) is not None:
            return None
        result = self._answer(job)
        reason, until_s = result.reason or Reason("packing", proven=False), math.inf
        if result.plan is not None:
            satisfied = satisfaction(result)
            wanted = self._worth_waiting_for(job, line, satisfied)
            beyond = self._over_quota(job, result.plan)
            if wanted is not None:
                reason = Reason("poor-bandwidth", proven=False, needed=wanted, available=satisfied)
                until_s = job.submitted_s + min(self._parameters.patience_s, self._parameters.overdue_s)
            elif beyond is not None:
                reason = beyond
            else:
                return result.plan
        self._known[job.name] = Refusal(self._state.freed, reason, until_s=until_s)
        self._refused[job.name] = reason
        self._tries -= 1
        return None

    def _answer(self, job: WaitingJob) -> Result:
        """What the solver says beside all that room is kept for."""
        room = self._room(job)
        if not self._crowded():
            return self._solve(job, room)
        return spared(job, room, self._sparing, self._solve, self._parameters.declined)

    def _crowded(self) -> bool:
        """Whether what runs and what waits takes so much of the nodes that room is worth more than balance."""
        if self._parameters.crowded is None:
            return False
        cluster = self._ledger.cluster
        waits = self._table.demand[self._left & self._able, :-1].sum(axis=0)
        capacity = cluster.node_capacity.sum(axis=1)
        taken = capacity - cluster.node_free.sum(axis=1) + waits
        return bool((taken > self._parameters.crowded * capacity).any())

    def _worth_waiting_for(self, job: WaitingJob, line: int, satisfied: float) -> float | None:
        """The bandwidth satisfaction for which the job had better wait, as long as it has patience and some running job
        will end; None where this one will do."""
        declined, patience_s = self._parameters.declined, self._parameters.patience_s
        if declined is None or self._overdue[line] or self._table.waited[line] >= patience_s:
            return None
        if satisfied >= 1.0 - declined - TOLERANCE or not any(
            run.expected_s is not None for run in self._state.running
        ):
            return None
        wanted = satisfaction(self._solve(job, self._ledger.base)) - declined
        return wanted if satisfied < wanted - TOLERANCE else None

    def _room(self, job: WaitingJob) -> Cluster:
        """The cluster with all in use that the job must leave alone."""
        if not self._outlook.reserved:
            return self._ledger.cluster
        end = end_of(self._state.now_s, job.expected_s)
        return self._outlook.cluster(self._outlook.use(self._outlook.now, end))

    def _beyond_quota(self, job: WaitingJob) -> Reason | None:
        if not self._shares.limited(job.tenant):
            return None
        nodes_only = np.append(job.demand[:-1], 0.0)  # flows within a node take no bandwidth
        return self._shares.beyond_quota(job.tenant, nodes_only)

    def _over_quota(self, job: WaitingJob, plan: Plan) -> Reason | None:
        return self._shares.beyond_quota(job.tenant, amounts_of(cells_of(job.problem, plan)))

    # Reservations.

    def _renew_reservations(self) -> None:
        """In the order of the promises. A promise of a time holds against all others; one of no time does not stand in
        the way of those that were made before it. Those of lower rank come later."""
        promises = [each for each in self._state.memory.reservations if self._in_turn(each.job)]
        kept = [each for each in promises if self._stands(each)]
        for each in kept:
            self._promises.reckon(each)
        for each in kept:
            if each.start_s is not None:
                self._outlook.reserve(each.job, each.begin, self._job(each.job).expected_s, each.cells)
        same = self._state.freed == self._state.memory.freed and self._parameters.preemption is None
        for each in kept:
            job = self._job(each.job)
            self._outlook.forget(job.name)
            renewed = each if same and each.begin > self._outlook.now else renew(self._outlook, job, each)
            if renewed is not None and (each.preempted is None or renewed.begin <= self._outlook.soon):
                self._promises.keep(job, renewed)
        if len(self._promised()) < len(promises):  # what they kept is free for others
            self._known = {name: refusal for name, refusal in self._known.items() if refusal.forever}

    def _in_turn(self, name: str) -> bool:
        return name in self._line and bool(self._turn[self._line[name]]) and name not in self._state.changed

    def _promised(self) -> list[Reservation]:
        return [each for each in self._promises.kept.values() if self._in_turn(each.job)]

    def _keep_room(self, job: WaitingJob) -> None:
        """A reservation for an overdue job, if there is to be one more."""
        full = self._promises.waited_for >= self._parameters.reservations
        if job.name in self._promises.kept or full or job.name in self._never:
            return
        refusal = self._known.get(job.name)
        if refusal is not None and (refusal.forever or not refusal.reservable):
            return
        if self._beyond_quota(job) is not None:
            return
        if len(self._starts) >= self._most or (self._tries <= 0 and job.name not in self._refused):
            self._more = True
            return
        found = reserve(self._outlook, job, self._solve)
        if found is None:
            self._tries -= 1
            reason = refusal.reason if refusal else Reason("packing", proven=False)
            self._known[job.name] = Refusal(self._state.freed, reason, reservable=False)
            return
        self._promises.keep(job, found)

    # Preemption.

    def _make_way(self) -> None:
        """For those whose turn it is: first those that were not tried, or not for longest."""
        margin = self._parameters.preemption
        if margin is None:
            return
        gone = {start.job for start in self._starts}
        gone.update(name for each in self._promises.kept.values() for name in self._promises.untold(each).names)
        running = [job for job in self._state.running if job.name not in gone and whose(job.name) not in gone]
        able = [line for line in self._order if self._turn[line] and self._may_preempt(line)]
        for line in sorted(able, key=lambda line: self._unmoved.get(self._table.jobs[line].name, UNTRIED).freed):
            job = self._table.jobs[line]
            victims = victims_of(job, running, margin)
            if not victims or self._is_unmoved(job, victims):
                continue
            if not self._ways:
                self._more = True
                break
            self._ways -= 1
            kept = self._promises.take(job)
            held, solve = self._ledger.held, self._solve
            soon = starts_soon(self._outlook, job, self._state.running, held, solve)
            found = None if soon else preempt(self._outlook, job, victims, held, solve)
            if found is not None and not self._over_quota(job, found.plan):
                self._promises.keep(job, found)
                self._promises.reckon(found)
                running = [each for each in running if each.name not in found.waits_for]
                continue
            until_s = self._state.now_s + MOMENTS_S if soon else math.inf
            self._unmoved[job.name] = Unmoved(self._state.freed, names_of(victims), until_s)
            if kept is not None:
                self._promises.keep(job, kept)

    def _is_unmoved(self, job: WaitingJob, victims: Sequence[RunningJob]) -> bool:
        """Whether it is known that they make no room for it."""
        known = self._unmoved.get(job.name, UNTRIED)
        same = (known.freed, known.victims) == (self._state.freed, names_of(victims))
        return same and self._state.now_s < known.until_s

    def _may_preempt(self, line: int) -> bool:
        """Whether the job was tried, and has no place for want of room that is not being made for it."""
        job = self._table.jobs[line]
        kept, refusal = self._promises.kept.get(job.name), self._known.get(job.name)
        if job.name in self._never or (kept is not None and kept.preempted is not None):
            return False
        if refusal is not None and (refusal.forever or refusal.reason.code in FITTING):
            return False
        return (refusal is not None or not self._fits[line]) and self._beyond_quota(job) is None

    def _stands(self, promise: Reservation) -> bool:
        """Whether a promise can be kept that others make room for."""
        if promise.preempted is None:
            return True
        met = self._promises.can_be_met(promise, preempting=self._parameters.preemption is not None)
        return met and self._over_quota(self._job(promise.job), promise.plan) is None

    def _job(self, name: str) -> WaitingJob:
        return self._table.jobs[self._line[name]]

    # Explanation.

    def _explained(self) -> tuple[Standing, ...]:
        room = Room.of(self._ledger.cluster)
        reasons = {line: self._reason(line, room) for line in self._order}
        kept, firm = self._promises.kept, self._parameters.preemption is None
        return standings(self._table, self._order, self._scores, reasons, kept, self._outlook, firm=firm)

    def _reason(self, line: int, room: Room) -> Reason | None:
        """None where it was not this job's turn. ``room``: what is free now."""
        job = self._table.jobs[line]
        refusal, kept = self._known.get(job.name), self._promises.kept.get(job.name)
        if kept is not None and kept.preempted is not None:
            return Reason("preempting")
        return (
            self._never.get(job.name)
            or self._beyond_quota(job)
            or room.hindrance(self._table, line, permanent=False)
            or (refusal.reason if refusal is not None else None)
        )
