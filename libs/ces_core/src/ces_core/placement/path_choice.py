"""Local search over paths: single flows move to other paths while that raises the score, and tasks stay on their
nodes."""

from __future__ import annotations

from ces_core.compiled.jit import compiled, lent
from ces_core.placement.fill import FillWork
from ces_core.placement.state import State
from ces_core.placement.trial import accept, attempt_path
from ces_core.placement.view import ProblemView

FILLED = 20_000
"""Budget of rates computed over all paths tried."""


@compiled
def better_paths(view: ProblemView, work: FillWork, state: State) -> None:
    """Moves one flow at a time to a better path, until a whole round changes nothing.

    A feasible plan stays feasible: an infeasible state may score higher than a feasible one that satisfies hardly any
    flow. The more flows there are, the fewer paths are tried, because each trial recomputes all rates.
    """
    view, work, state = lent(view), lent(work), lent(state)
    flows, candidates = len(view.low), view.fits.shape[1]
    tried, unmoved, f = 0, 0, 0
    while unmoved < flows and tried * flows < FILLED:
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = state.node_of[src] if src >= 0 else -1 - src
        b = state.node_of[dst] if dst >= 0 else -1 - dst
        first, last = view.pair_first[a * candidates + b], view.pair_first[a * candidates + b + 1]
        unmoved += 1
        for q in range(first, last):
            if last - first < 2 or q == state.path[f]:
                continue
            tried += 1
            score = attempt_path(view, work, state, f, q)
            if score > state.score[0] + 1e-12 and (state.fits[1] or not state.fits[0]):
                accept(view, state, state.node_of, score)
                unmoved = 0
        f = (f + 1) % flows
