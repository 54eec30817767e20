"""A round: one cycle over a look at the queue, and all that is to be said of what it decided. It takes as long as the
solver does, so it belongs into a thread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ces_common.messages.events import Standing
from ces_core.multi.cycle import cycle
from ces_core.multi.parameters import Parameters
from ces_core.multi.recording import Record
from ces_core.multi.state import Decisions
from ces_core.solvers import Solver
from ces_scheduler.deciding import Asking, Decision, decision_of, share_of
from ces_scheduler.queueing import Look, Past
from ces_scheduler.standing import standings_of


@dataclass(frozen=True)
class Placing:
    """How jobs are placed. ``time_limit_s``: how long the jobs that wait at one time may take together; None: as the
    solver sees fit. ``fallback``: why the solver is not the one that was asked for. ``paths``: flows may take any of so
    many shortest paths; None: any hop-shortest one."""

    solver: Solver
    parameters: Parameters
    time_limit_s: float | None = None
    fallback: str | None = None
    paths: int | None = None


@dataclass(frozen=True, eq=False)
class Round:
    """``starts``: job -> its plan, in the order of the decisions. ``version``: of the state that was looked at."""

    version: int
    look: Look
    decisions: Decisions
    starts: Mapping[str, Decision]
    past: Past
    asking: Asking
    parameters: Parameters

    @cached_property
    def standings(self) -> list[Standing]:
        """Those that go on waiting, first one first. Worked out when asked for."""
        state = self.look.state
        return standings_of(self.decisions.queue, state.waiting, state.now_s, self.parameters)


def play(version: int, look: Look, placing: Placing, record: Record | None = None) -> Round:
    seeds = {name: job.attempt for name, job in look.records.items()}
    limit_s = share_of(placing.time_limit_s, look.untried)
    asking = Asking(placing.solver, seeds, time.perf_counter, limit_s, placing.fallback)
    decisions = cycle(look.state, placing.parameters, asking, asking.sparing)
    if record is not None:
        record(look.state, placing.parameters, seeds, decisions)
    starts: dict[str, Decision] = {}
    offer = look.offer
    jobs = {job.name: job for job in look.state.waiting}
    for start in decisions.starts:
        decision = decision_of(look.records[start.job], jobs[start.job], start.plan, offer, asking)
        starts[start.job] = decision
        offer = offer.less({start.job: decision.cells})
    return Round(version, look, decisions, starts, look.after(offer, decisions), asking, placing.parameters)
