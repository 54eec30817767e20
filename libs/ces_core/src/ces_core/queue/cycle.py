"""One cycle of the queue: which jobs start now, which get a reservation, and why the others wait.

Jobs that must begin now come first, then overdue ones, each oldest first; of either kind, up to a limit, those that
cannot start get a reservation. The others follow by score, recomputed after every start because the free capacity has
changed. A job that does not fit is passed over (backfilling); a later one may start only if it delays no reservation.
With preemption, all this happens priority by priority, and at the end of each running jobs may give way to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from types import MappingProxyType

import numpy as np

from ces_core.model.plan import Plan, Result
from ces_core.model.problem import BoolArray, Cluster
from ces_core.model.reason import Reason
from ces_core.queue.cycle_reservations import CycleReservations
from ces_core.queue.feasibility import FreeCapacity, screened
from ces_core.queue.fragmentation import fragmentation_aware_answer, satisfaction
from ces_core.queue.jobs import RunningJob, WaitingJob, whose
from ces_core.queue.ledger import TOLERANCE, cells_of
from ces_core.queue.outlook import Outlook, end_of
from ces_core.queue.parameters import Parameters
from ces_core.queue.preemption import MOMENTS_S, names_of, preempt, starts_soon, victims_of
from ces_core.queue.reservations import Reservation, Solve, renew, reserve
from ces_core.queue.scores import Table, firsts, flooded, ranks
from ces_core.queue.shares import Shares, amounts_of, free_of
from ces_core.queue.state import Decisions, Memory, Refusal, Start, State, Unmoved
from ces_core.queue.status import QueueStatus, queue_statuses

FITTING = frozenset({"quota", "poor-bandwidth"})
"""Reasons that keep a job waiting even though there is capacity for it."""
UNTRIED = Unmoved(-1, ())


def cycle(state: State, parameters: Parameters, solve: Solve, fragmentation_aware: Solve | None = None) -> Decisions:
    """Decide one cycle of the queue.

    ``fragmentation_aware`` is the solver for a crowded cluster, one that values the capacity a plan leaves for later
    jobs; None means ``solve``, so that crowding changes nothing. Reservations, and what a job could have on the empty
    cluster, always come from ``solve``.

    Raises ProblemError for a job of an unknown tenant, OverCapacityError if a plan does not fit.
    """
    return _Cycle(state, parameters, solve, fragmentation_aware or solve).run()


class _Cycle:
    def __init__(self, state: State, parameters: Parameters, solve: Solve, fragmentation_aware: Solve) -> None:
        self._state, self._parameters = state, parameters
        self._solve, self._fragmentation_aware = screened(solve), screened(fragmentation_aware)
        self._ledger = state.ledger.copy()
        running = sorted(state.running, key=lambda job: (job.started_s, job.name))
        self._outlook = Outlook(self._ledger, running, state.now_s)
        self._shares = Shares(parameters, self._ledger, running, state.waiting)
        self._reservations = CycleReservations(self._ledger, self._outlook, self._shares, running)
        jobs = sorted(state.waiting, key=lambda job: (job.submitted_s, job.name))
        self._table = Table(jobs, state.now_s)
        self._line = {job.name: line for line, job in enumerate(jobs)}
        pressing = np.array([job.pressing for job in jobs], dtype=np.bool_)
        self._overdue = self._table.waited >= parameters.overdue_s
        self._ahead = pressing | self._overdue
        self._age = np.arange(len(jobs)) - len(jobs) * pressing  # of those that come first, the least goes first
        self._ranks = ranks(self._table, parameters.preemption)
        self._left = self._turn = np.ones(len(jobs), dtype=np.bool_)
        self._fits = self._left
        same = self._line.keys() - state.changed
        self._known = {
            name: refusal
            for name, refusal in state.memory.refusals.items()
            if name in same and (refusal.forever or (refusal.freed == state.freed and state.now_s < refusal.until_s))
        }
        self._tries_left = math.inf if parameters.window is None else parameters.window
        self._max_starts = math.inf if parameters.starts is None else parameters.starts
        self._preemptions_left = len(jobs) if parameters.window is None else parameters.window
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
            for job in self._first_in_line():
                if not self._start(job):
                    self._reserve(job)
            while any(self._start(self._table.jobs[line]) for line in self._candidates()):
                pass
            self._preempt_for_blocked()
        refusals, unmoved = MappingProxyType(dict(self._known)), MappingProxyType(self._unmoved)
        return Decisions(
            tuple(self._starts),
            Memory(self._state.freed, tuple(self._reservations.kept.values()), refusals, unmoved),
            MappingProxyType(self._refused),
            MappingProxyType(self._reservations.all_pending()),
            self._more,
            self._explained,
        )

    def _look(self) -> None:
        """Score and order the jobs left. Free capacity only shrinks within a cycle, so a job that did not fit stays
        out."""
        self._fits = FreeCapacity.of(self._ledger.cluster).holds(self._table, self._fits & self._left)
        free, against = free_of(self._ledger.cluster), self._shares.against_fair()
        self._scores = self._table.scores(self._parameters, free, against)
        order = np.lexsort((np.arange(len(self._left)), -self._scores.parts.sum(axis=1)))
        self._newcomers = firsts(self._table, self._shares, order.tolist(), self._left)
        ahead = self._newcomers & self._flooded()  # a flood holds up nobody's first
        group = np.where(self._ahead, 0, np.where(ahead, 1, 2))
        age = np.where(self._ahead, self._age, 0)
        order = order[np.lexsort((age[order], group[order], -self._ranks[order]))]
        self._order: list[int] = order[self._left[order]].tolist()

    def _hopeless(self) -> dict[str, Reason]:
        """Jobs that can never be placed, as far as that shows without asking a solver."""
        found = {}
        free = FreeCapacity.of(self._ledger.base)
        doubtful = self._left & ~self._fits  # who fits now fits the empty cluster
        for line in np.flatnonzero(doubtful & ~free.holds(self._table, doubtful)).tolist():
            reason = free.hindrance(self._table, line, permanent=True)
            if reason is not None:
                found[self._table.jobs[line].name] = reason
        limited = np.array([self._shares.limited(name) for name in self._table.tenants], dtype=np.bool_)
        for line in np.flatnonzero(limited[self._table.tenant]).tolist():
            job = self._table.jobs[line]
            beyond = self._beyond_quota(job)
            if beyond is not None and beyond.permanent:
                found[job.name] = beyond
        return found

    def _flooded(self) -> BoolArray:
        """(jobs,): jobs that a flood of other tenants' jobs would keep from being tried."""
        if self._parameters.window is None or not self._newcomers.any():
            return np.zeros(len(self._left), dtype=np.bool_)
        refused = np.array([job.name in self._known for job in self._table.jobs], dtype=np.bool_)
        return flooded(self._table, self._parameters.window, self._fits & ~self._ahead & ~refused)

    def _first_in_line(self) -> Iterator[WaitingJob]:
        """Jobs with a reservation in the order of their reservations, then those that come first."""
        reserved = [self._line[each.job] for each in self._held_reservations()]
        first = np.flatnonzero(self._ahead & self._turn)
        for line in dict.fromkeys([*reserved, *first[np.argsort(self._age[first])].tolist()]):
            yield self._table.jobs[line]

    def _candidates(self) -> list[int]:
        """The other jobs that may fit, best first."""
        open_to = self._fits & ~self._ahead & self._turn
        return [line for line in self._order if open_to[line] and self._table.jobs[line].name not in self._known]

    def _has_turn(self, line: int) -> bool:
        """Whether the window still reaches the job. A tenant with no running job always has its best job tried, even if
        other tenants have used up the window."""
        reached = self._tries_left > 0 or bool(self._newcomers[line])
        self._more |= not reached
        return reached

    def _start(self, job: WaitingJob) -> bool:
        """Try to start the job; returns whether it started."""
        if len(self._starts) >= self._max_starts:
            self._more = True
            return False
        line = self._line[job.name]
        kept = self._reservations.take(job)
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
                self._reservations.keep(job, kept)
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
        """A plan with which the job starts now, leaving all reservations untouched. None if there is none, or its quota
        or a better plan later is against it. What does not start it is remembered, and uses up the window."""
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
        self._tries_left -= 1
        return None

    def _answer(self, job: WaitingJob) -> Result:
        """The solver's answer on the capacity that reservations leave."""
        available = self._available_to(job)
        if not self._crowded():
            return self._solve(job, available)
        return fragmentation_aware_answer(
            job, available, self._fragmentation_aware, self._solve, self._parameters.declined
        )

    def _crowded(self) -> bool:
        """Whether running and waiting jobs together ask for so much that free capacity matters more than balance."""
        if self._parameters.crowded is None:
            return False
        cluster = self._ledger.cluster
        waits = self._table.demand[self._left & self._able, :-1].sum(axis=0)
        capacity = cluster.node_capacity.sum(axis=1)
        taken = capacity - cluster.node_free.sum(axis=1) + waits
        return bool((taken > self._parameters.crowded * capacity).any())

    def _worth_waiting_for(self, job: WaitingJob, line: int, satisfied: float) -> float | None:
        """The least satisfaction that the job accepts: that on the empty cluster less ``declined``. None if it has that
        now, comes first, has no patience left, or no running job says when it ends."""
        declined, patience_s = self._parameters.declined, self._parameters.patience_s
        if declined is None or self._ahead[line] or self._table.waited[line] >= patience_s:
            return None
        if satisfied >= 1.0 - declined - TOLERANCE or not any(
            run.expected_s is not None for run in self._state.running
        ):
            return None
        wanted = satisfaction(self._solve(job, self._ledger.base)) - declined
        return wanted if satisfied < wanted - TOLERANCE else None

    def _available_to(self, job: WaitingJob) -> Cluster:
        """The cluster as the job may use it: everything it must leave alone counts as used."""
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
        """Carry reservations over from the last cycle, in order. One with a known start holds against everybody; one
        without never delays those made before it. Jobs of lower rank come later."""
        previous = [each for each in self._state.memory.reservations if self._in_turn(each.job)]
        kept = [each for each in previous if self._stands(each)]
        for each in kept:
            self._reservations.expect_preemptions(each)
        for each in kept:
            if each.start_s is not None:
                self._outlook.reserve(each.job, each.begin, self._job(each.job).expected_s, each.cells)
        same = self._state.freed == self._state.memory.freed and self._parameters.preemption is None
        for each in kept:
            job = self._job(each.job)
            self._outlook.forget(job.name)
            renewed = each if same and each.begin > self._outlook.now else renew(self._outlook, job, each)
            if renewed is not None and (each.preempted is None or renewed.begin <= self._outlook.soon):
                self._reservations.keep(job, renewed)
        if len(self._held_reservations()) < len(previous):  # what they kept is free for others
            self._known = {name: refusal for name, refusal in self._known.items() if refusal.forever}

    def _in_turn(self, name: str) -> bool:
        return name in self._line and bool(self._turn[self._line[name]]) and name not in self._state.changed

    def _held_reservations(self) -> list[Reservation]:
        return [each for each in self._reservations.kept.values() if self._in_turn(each.job)]

    def _reserve(self, job: WaitingJob) -> None:
        """Reserve capacity for a job that comes first, unless the limit for its kind is reached."""
        kept = [self._job(each.job) for each in self._reservations.kept.values() if each.preempted is None]
        full = sum(other.pressing is job.pressing for other in kept) >= self._parameters.reservations
        if job.name in self._reservations.kept or full or job.name in self._never:
            return
        refusal = self._known.get(job.name)
        if refusal is not None and (refusal.forever or not refusal.reservable):
            return
        if self._beyond_quota(job) is not None:
            return
        if len(self._starts) >= self._max_starts or (self._tries_left <= 0 and job.name not in self._refused):
            self._more = True
            return
        found = reserve(self._outlook, job, self._solve)
        if found is None:
            self._tries_left -= 1
            reason = refusal.reason if refusal else Reason("packing", proven=False)
            self._known[job.name] = Refusal(self._state.freed, reason, reservable=False)
            return
        self._reservations.keep(job, found)

    # Preemption.

    def _preempt_for_blocked(self) -> None:
        """Try preemption for jobs that could not start, beginning with those tried longest ago or never."""
        margin = self._parameters.preemption
        if margin is None:
            return
        gone = {start.job for start in self._starts}
        gone.update(
            name for each in self._reservations.kept.values() for name in self._reservations.pending(each).names
        )
        running = [job for job in self._state.running if job.name not in gone and whose(job.name) not in gone]
        able = [line for line in self._order if self._turn[line] and self._may_preempt(line)]
        for line in sorted(able, key=lambda line: self._unmoved.get(self._table.jobs[line].name, UNTRIED).freed):
            job = self._table.jobs[line]
            victims = victims_of(job, running, margin)
            if not victims or self._is_unmoved(job, victims):
                continue
            if not self._preemptions_left:
                self._more = True
                break
            self._preemptions_left -= 1
            kept = self._reservations.take(job)
            held, solve = self._ledger.held, self._solve
            soon = starts_soon(self._outlook, job, self._state.running, solve)
            found = None if soon else preempt(self._outlook, job, victims, held, solve)
            if found is not None and not self._over_quota(job, found.plan):
                self._reservations.keep(job, found)
                self._reservations.expect_preemptions(found)
                running = [each for each in running if each.name not in found.waits_for]
                continue
            until_s = self._state.now_s + MOMENTS_S if soon else math.inf
            self._unmoved[job.name] = Unmoved(self._state.freed, names_of(victims), until_s)
            if kept is not None:
                self._reservations.keep(job, kept)

    def _is_unmoved(self, job: WaitingJob, victims: Sequence[RunningJob]) -> bool:
        """Whether these victims are already known not to free enough for the job."""
        known = self._unmoved.get(job.name, UNTRIED)
        same = (known.freed, known.victims) == (self._state.freed, names_of(victims))
        return same and self._state.now_s < known.until_s

    def _may_preempt(self, line: int) -> bool:
        """Whether the job was tried and failed for lack of capacity that nobody is freeing for it yet."""
        job = self._table.jobs[line]
        kept, refusal = self._reservations.kept.get(job.name), self._known.get(job.name)
        if job.name in self._never or (kept is not None and kept.preempted is not None):
            return False
        if refusal is not None and (refusal.forever or refusal.reason.code in FITTING):
            return False
        return (refusal is not None or not self._fits[line]) and self._beyond_quota(job) is None

    def _stands(self, reservation: Reservation) -> bool:
        """Whether a reservation that relies on preemption can still be kept."""
        if reservation.preempted is None:
            return True
        met = self._reservations.can_be_met(reservation, preempting=self._parameters.preemption is not None)
        return met and self._over_quota(self._job(reservation.job), reservation.plan) is None

    def _job(self, name: str) -> WaitingJob:
        return self._table.jobs[self._line[name]]

    # Explanation.

    def _explained(self) -> tuple[QueueStatus, ...]:
        free = FreeCapacity.of(self._ledger.cluster)
        reasons = {line: self._reason(line, free) for line in self._order}
        kept, firm = self._reservations.kept, self._parameters.preemption is None
        return queue_statuses(self._table, self._order, self._scores, reasons, kept, self._outlook, firm=firm)

    def _reason(self, line: int, free: FreeCapacity) -> Reason | None:
        """Why the job waits; None if it has not been tried. ``free``: the capacity that is free now."""
        job = self._table.jobs[line]
        refusal, kept = self._known.get(job.name), self._reservations.kept.get(job.name)
        if kept is not None and kept.preempted is not None:
            return Reason("preempting")
        found = self._never.get(job.name) or self._beyond_quota(job)
        found = found or free.hindrance(self._table, line, permanent=False)
        found = found or (refusal.reason if refusal is not None else None)
        return None if found is None else free.by_node(job, found)
