"""A candidate beside the live policy on logged decisions that it has not learned from."""

from __future__ import annotations

from collections.abc import Callable

from ces_core.evolution.decision_log import WholeLog
from ces_core.evolution.folder import MOST_PAIRS, EvolutionFolder
from ces_core.evolution.pairing import compared
from ces_core.evolution.solvers import solver_of
from ces_core.evolution.state import State, Version

BATCH = 50
"""Comparisons that are written down together."""
News = Callable[[int, int], None]
"""Hears how many decisions are compared by now, and how many there are."""


def replay(
    folder: EvolutionFolder, state: State, version: Version, log: WholeLog, most: int, news: News = lambda *_: None
) -> int:
    """Compare them on the decisions since the version has learned, but for those that are compared already, in order;
    returns how many were. Raises what reading the folder and loading policies raises."""
    file = folder.candidacy(version.name, state)
    known = {pair.name for pair in folder.pairs(file)}
    held_out = [each for each in log.decisions if each.at_s > version.learned_until_s and each.name not in known]
    held_out = held_out[: max(0, min(most, MOST_PAIRS - len(known)))]
    live, candidate = (solver_of(folder, state, name) for name in (state.live, version.name))
    if held_out:  # what is paid for once is no part of a decision
        for solver in (live, candidate):
            solver.solve(held_out[0].problem)
    found, done = [], 0
    for number, each in enumerate(held_out, 1):
        pair = compared(each, live, candidate)
        if pair is not None:
            found.append(pair)
            done += 1
        if len(found) >= BATCH or number == len(held_out):
            folder.keep(file, found)
            found = []
        news(number, len(held_out))
    return done
