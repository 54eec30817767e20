"""From scores to an answer: what the solvers that place a job step by step share, whoever scores."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from ces_core.candidates import candidates
from ces_core.diagnosis import SearchTrace, obstacle
from ces_core.kernels.compact import Compact, compact
from ces_core.plan import Result
from ces_core.policy.decode import Board, Scorer, Stuck, fortified, greedy
from ces_core.policy.draws import best_of
from ces_core.problem import Problem
from ces_core.reason import Reason
from ces_core.solvers.finishing import planned


@dataclass(frozen=True)
class Decoding:
    """How scores become a plan. ``fortified``: what was seen on the way counts, too. ``samples``: so many plans are
    drawn beside that, at ``temperature``, above 0."""

    fortified: bool = True
    samples: int = 0
    temperature: float = 0.0

    def of(self, view: Compact, scorer: Scorer, seed: int, until: float) -> Board | Stuck:
        """A time limit ends the drawing of plans; the first plan, a matter of milliseconds, is always looked for."""
        found = fortified(view, scorer) if self.fortified else greedy(view, scorer)
        if self.samples and time.perf_counter() < until:
            drawn = best_of(view, scorer, self.samples, self.temperature, np.random.default_rng(seed))
            found = _better(found, drawn)
        return found


def decoded(
    name: str, problem: Problem, scorer: Scorer, decoding: Decoding, seed: int, time_limit_s: float | None
) -> Result | tuple[Board, Result]:
    """The board and its plan, or the reason why there is none."""
    started = time.perf_counter()
    hindrance = obstacle(problem)
    if hindrance is not None:
        return Result(name, SearchTrace.of(problem).considered, reason=hindrance)
    view = compact(problem, candidates(problem, seed))
    found = decoding.of(view, scorer, seed, math.inf if time_limit_s is None else started + time_limit_s)
    if isinstance(found, Stuck):
        return Result(name, SearchTrace.of(problem).considered, reason=_reason(problem, found))
    return found, planned(name, problem, view, found.state)


def _better(found: Board | Stuck, drawn: Board | None) -> Board | Stuck:
    if drawn is None or (isinstance(found, Board) and found.state.score[0] >= drawn.state.score[0]):
        return found
    return drawn


def _reason(problem: Problem, stuck: Stuck) -> Reason:
    """What the policy stumbled over; it proves nothing."""
    if stuck.crowded:
        return Reason("packing", proven=False, task=problem.tasks[stuck.task].name)
    return Reason("bandwidth-together", proven=False, resource="bandwidth")
