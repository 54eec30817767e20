"""Which nodes a job had better leave alone, since it would still run when their owners come. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from ces_common.messages.records import NodeRecord
from ces_core.model.problem import Problem
from ces_scheduler.offer import Offer

UNSAID_S: Final = 3600.0
"""A job that does not say how long it runs leaves nodes alone whose owners are expected sooner."""


@dataclass(frozen=True)
class OwnerForecast:
    """``comes_s``: node -> seconds until its owner is expected, where that is known."""

    comes_s: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(offer: Offer, now: datetime) -> OwnerForecast:
        """By the calendars of the nodes that are offered."""
        found = ((name, _seconds(node, now)) for name, node in offer.nodes.items() if node.calendar is not None)
        return OwnerForecast({name: seconds for name, seconds in found if seconds is not None})

    def early(self, expected_s: float | None) -> dict[str, float]:
        """The nodes whose owners come before a job that runs for so long would have ended; None: it does not say."""
        needed_s = UNSAID_S if expected_s is None else expected_s
        return {name: seconds for name, seconds in self.comes_s.items() if seconds < needed_s}

    def first_s(self, nodes: Iterable[str]) -> float:
        """Seconds until the first owner of these nodes is expected; infinite where none is."""
        return min((self.comes_s.get(name, math.inf) for name in nodes), default=math.inf)

    def narrowed(self, problem: Problem, expected_s: float | None) -> Problem | None:
        """The problem without those nodes; None where that bars no task from any node, or one from all."""
        index = problem.cluster.topology.node_index
        early = [index[name] for name in self.early(expected_s) if name in index]
        if not early:
            return None
        allowed = problem.allowed.copy()
        allowed[:, early] = False
        allowed.setflags(write=False)
        if not allowed.any(axis=1).all() or (allowed == problem.allowed).all():
            return None
        return replace(problem, allowed=allowed)


def expected_text(seconds: float) -> str:
    """Why a node was left alone whose owner comes so soon."""
    return f"its owner is expected in {math.ceil(seconds / 60)} min" if seconds else "its owner is expected now"


def _seconds(node: NodeRecord, now: datetime) -> float | None:
    try:
        return None if node.calendar is None else (node.calendar.expected_at(now) - now).total_seconds()
    except ValueError:  # a zone that the manager knows and this machine does not
        return None
