"""One cycle over the queue, and everything that is to be said of what it decided. It takes as long as the solver does,
so it is run in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from ces_common.messages.events import QueueStatus
from ces_common.messages.records import JobRecord
from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters
from ces_core.queue.policies import QueuePolicy
from ces_core.queue.record import Record
from ces_core.queue.state import Decisions
from ces_core.solver import Solver
from ces_scheduler.card_choice import CardRoom, with_cards
from ces_scheduler.card_decisions import not_started
from ces_scheduler.card_value import WEIGHT
from ces_scheduler.cycle_input import CycleInput, LastCycle
from ces_scheduler.deadline_shares import Judgement, must_be_admitted
from ces_scheduler.decision import Decision, decision_of
from ces_scheduler.offer import Offer
from ces_scheduler.owner_forecast import OwnerForecast
from ces_scheduler.queue_status import queue_statuses
from ces_scheduler.sizing import Sizing
from ces_scheduler.solver_calls import SolverCalls, share_of
from ces_scheduler.start_amounts import USUAL, Rule
from ces_scheduler.start_cpu import waiting_for_more, waits_for_more

UNJUDGED = Judgement()
QUOTA = "quota"  # why a job waits for which there is room


@dataclass(frozen=True)
class Placing:
    """How jobs are placed. ``time_limit_s``: for all jobs that wait at one time together; None: as the solver sees fit.
    ``fallback``: why the solver is not the one that was asked for. ``paths``: flows may take any of this many shortest
    paths; None: any hop-shortest one. ``policy``: decides over the queue; ``amounts``: with
    how much CPU jobs begin where CES chooses it; ``seconds``: the clock by which solvers' budgets are measured;
    ``card_weight``: see LeftOver."""

    solver: Solver
    parameters: Parameters
    time_limit_s: float | None = None
    fallback: str | None = None
    paths: int | None = None
    policy: QueuePolicy = cycle
    amounts: Rule = USUAL
    seconds: Callable[[], float] = time.perf_counter
    card_weight: float = WEIGHT


@dataclass(frozen=True, eq=False)
class CycleRun:
    """``version``: of the state that was looked at. ``starts``: job -> its plan, in the order of the decisions, and
    ``started`` its record, where malleable jobs have the size at which they start. ``last``: what the next cycle goes
    on from."""

    version: int
    given: CycleInput
    decisions: Decisions
    starts: Mapping[str, Decision]
    started: Mapping[str, JobRecord]
    last: LastCycle
    calls: SolverCalls
    parameters: Parameters

    @cached_property
    def unable(self) -> frozenset[str]:
        """Jobs that went on waiting for something else than capacity, as far as that is known."""
        barred = {name for name, entry in self.given.entries.items() if entry.reason is not None}
        return frozenset(barred | _never(self.decisions))

    @cached_property
    def hopeless(self) -> frozenset[str]:
        """Jobs that get no place as they are, whatever becomes free."""
        return frozenset(_hopeless(self.decisions))

    @cached_property
    def statuses(self) -> list[QueueStatus]:
        """The jobs that go on waiting, in queue order. Worked out when asked for."""
        state, records = self.given.state, self.given.records
        queue = [
            each if each.reason is None else replace(each, reason=self.calls.said(each.job, each.reason))
            for each in self.decisions.queue
        ]
        told = queue_statuses(queue, state.waiting, state.now_s, self.parameters)
        return [waiting_for_more(each, records[each.job]) for each in told]


def run_cycle(
    version: int,
    given: CycleInput,
    placing: Placing,
    record: Record | None = None,
    judgement: Judgement = UNJUDGED,
) -> CycleRun:
    """Hold one cycle. ``record`` is called with what went in and came out; ``judgement``: on deadlines."""
    seeds = {name: job.attempt for name, job in given.records.items()}
    limit_s = share_of(placing.time_limit_s, given.untried)
    owners = OwnerForecast.of(given.offer, datetime.fromtimestamp(given.state.now_s, UTC))
    room = CardRoom(given.offer, given.records, given.state.ledger.base.cards, placing.card_weight)
    calls = SolverCalls(placing.solver, seeds, placing.seconds, limit_s, placing.fallback, owners, room)
    decisions = placing.policy(given.state, placing.parameters, calls, calls.fragmentation_aware)
    if record is not None:
        record(given.state, placing.parameters, seeds, decisions)
    starts: dict[str, Decision] = {}
    offer = given.offer
    jobs = {job.name: job for job in given.state.waiting}
    for start in decisions.starts:
        decision = decision_of(given.records[start.job], jobs[start.job], start.plan, offer, calls)
        starts[start.job] = decision
        offer = offer.less({start.job: decision.cells})
    started = {name: given.records[name] for name in starts}
    if not blocked(given, decisions):
        tenants = tenants_of(offer) | {name: record.tenant for name, record in started.items()}
        others = [record for record in offer.records.values() if record.size is not None]
        sizing = Sizing(calls, placing.parameters, tenants, placing.paths, others=others)
        offer = _enlarge(starts, started, offer, sizing, judgement)
    starts, dropped = with_cards(starts, started, given.offer)
    for name in dropped:
        offer, started = offer.without(name), {each: started[each] for each in starts}
    decisions = not_started(decisions, dropped, given.state.freed)
    after = given.after(offer, decisions)
    return CycleRun(version, given, decisions, starts, started, after, calls, placing.parameters)


def blocked(given: CycleInput, decisions: Decisions) -> bool:
    """Whether a job goes on waiting that gets a place some time for which nothing but capacity lacks. One that waits
    for more CPU than it asks for does not count."""
    others = {start.job for start in decisions.starts} | _never(decisions)
    return any(job.name not in others and not waits_for_more(given.records[job.name]) for job in given.state.waiting)


def _never(decisions: Decisions) -> set[str]:
    """Jobs that get no place, whatever becomes free: it lacks them of their tenant's quota, or of nodes."""
    return _hopeless(decisions) | {name for name, reason in decisions.refused.items() if reason.code == QUOTA}


def _hopeless(decisions: Decisions) -> set[str]:
    never = {name for name, refusal in decisions.memory.refusals.items() if refusal.forever}
    return never | {name for name, reason in decisions.refused.items() if reason.permanent and reason.proven}


def startable(waiting: Mapping[str, JobRecord], run: CycleRun | None) -> Mapping[str, JobRecord]:
    """Those that are to be judged by their deadlines: others are not held up for a job that could not start anyway."""
    if run is None or run.unable.isdisjoint(waiting):
        return waiting
    return {name: job for name, job in waiting.items() if name not in run.unable or must_be_admitted(job)}


def tenants_of(offer: Offer) -> dict[str, str]:
    """Of the jobs that hold something."""
    return {name: record.tenant for name, record in offer.records.items()}


def _enlarge(
    starts: dict[str, Decision],
    started: dict[str, JobRecord],
    offer: Offer,
    sizing: Sizing,
    judgement: Judgement,
) -> Offer:
    """Let malleable jobs that start do so at the largest size that fits what all starts leave, and is theirs; returns
    what is left then."""
    for name, record in started.items():
        left = offer if record.size is None else offer.without(name)
        found = sizing.enlarged(record, left, judgement.most(name))
        if found is not None:
            starts[name], started[name] = found.decision, found.record
            offer = left.less({name: found.decision.cells})
    return offer
