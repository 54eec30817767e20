"""Looks at a queue without a service around them: what becomes of jobs that wait, on what is offered."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from cluster_state import NOW

from ces_common.messages.events import Reason
from ces_common.messages.plans import FlowPlan
from ces_common.messages.records import JobRecord
from ces_core.queue.parameters import Parameters
from ces_core.registry import DEFAULT, get_solver
from ces_core.solver import Solver
from ces_scheduler.cycle_input import cycle_input
from ces_scheduler.cycle_run import Placing, run_cycle
from ces_scheduler.decision import Decision
from ces_scheduler.offer import Offer

SOON = NOW + timedelta(minutes=1)  # after the jobs of tests were submitted


def no_time() -> float:
    """A clock by which nothing takes long, however busy the machine is: no budget runs out."""
    return 0.0


def placing(solver: Solver | None = None, parameters: Parameters | None = None, **fields: Any) -> Placing:
    """The default solver; a queue with all defaults."""
    return Placing(solver or get_solver(DEFAULT), parameters or Parameters(), **{"seconds": no_time} | fields)


@dataclass(frozen=True)
class Decided:
    """What became of one job: a decision, or the reason why there is none."""

    decision: Decision | None = None
    reason: Reason | None = None
    assignments: dict[str, str] = field(default_factory=dict)
    flows: list[FlowPlan] = field(default_factory=list)


def decided(record: JobRecord, offer: Offer, how: Placing | None = None) -> Decided:
    """A job that waits alone."""
    how = how or placing()
    look = cycle_input([record], offer, [], SOON, how.parameters, None, how.paths)
    barred = look.entries[record.id].reason
    if barred is not None:
        return Decided(reason=barred)
    played = run_cycle(1, look, how)
    decision = played.starts.get(record.id)
    if decision is None:
        return Decided(reason=played.statuses[0].reason)
    return Decided(decision, None, decision.assignments, decision.flows)
