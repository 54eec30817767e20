"""Which nodes a job had better leave alone, since it would still run when their owners come. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from ces_common.messages.owner_calendar import OwnerCalendar
from ces_core.model.problem import Problem
from ces_core.queue.feasibility import apart
from ces_scheduler.offer import Offer

UNSAID_S: Final = 3600.0
"""A job that does not say how long it runs leaves nodes alone whose owners are expected sooner."""
MOMENT_S: Final = 600.0
"""Where it has no place without them, at least those whose owners are expected sooner than this."""


@dataclass(frozen=True)
class OwnerForecast:
    """``comes_s``: node -> seconds until its owner is expected, where that is known."""

    comes_s: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(offer: Offer, now: datetime) -> OwnerForecast:
        """By the calendars of the nodes that are offered."""
        kept = {name: node.calendar for name, node in offer.nodes.items() if node.calendar is not None}
        known = {calendar: _seconds(calendar, now) for calendar in set(kept.values())}
        return OwnerForecast({name: comes for name, each in kept.items() if (comes := known[each]) is not None})

    def early(self, within_s: float) -> dict[str, float]:
        """The nodes whose owners come sooner."""
        return {name: seconds for name, seconds in self.comes_s.items() if seconds < within_s}

    def choices(self, problem: Problem, expected_s: float | None) -> Iterator[tuple[Problem, Mapping[str, float]]]:
        """The problem without the nodes that are best left alone, and which those are; then with more of them. Nothing
        where there are none, or where the tasks cannot fit on the others. A task that may run on none of the others
        keeps its nodes. ``expected_s``: for how long the job runs; None: it does not say."""
        needed_s = UNSAID_S if expected_s is None else expected_s
        before: Mapping[str, float] = {}
        for within_s in (needed_s, min(needed_s, MOMENT_S)) if self.comes_s else ():
            early = self.early(within_s)
            if early == before:
                continue
            before, narrowed = early, without(problem, early)
            if narrowed is not problem and apart(narrowed) is None:
                yield narrowed, early

    def barred(self, within_s: float, held: Collection[str]) -> dict[str, float]:
        """The nodes whose owners come sooner, without those in ``held``: the job is on them already, and loses them
        wherever else it goes."""
        return {name: seconds for name, seconds in self.early(within_s).items() if name not in held}


def without(problem: Problem, nodes: Collection[str], *, strictly: bool = False) -> Problem:
    """The problem without these nodes; the same one where nothing changes. A task that may run on none of the others
    keeps them, unless ``strictly``."""
    index = problem.cluster.topology.node_index
    columns = [index[name] for name in nodes if name in index]
    if not columns:
        return problem
    allowed = problem.allowed.copy()
    allowed[:, columns] = False
    if not strictly:
        bound = ~allowed.any(axis=1)
        allowed[bound] = problem.allowed[bound]
    if (allowed == problem.allowed).all():
        return problem
    allowed.setflags(write=False)
    return replace(problem, allowed=allowed)


def expected_text(seconds: float) -> str:
    """Why a node was left alone whose owner comes so soon."""
    if not seconds:
        return "its owner is expected now"
    minutes = math.ceil(seconds / 60)
    return f"its owner is expected in {f'{minutes} min' if minutes < 120 else f'{round(minutes / 60)} h'}"


def _seconds(calendar: OwnerCalendar, now: datetime) -> float | None:
    try:
        return (calendar.expected_at(now) - now).total_seconds()
    except ValueError:  # of a manager that knows more than this scheduler
        return None
