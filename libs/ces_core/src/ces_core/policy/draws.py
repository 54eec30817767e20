"""Many plans drawn by a policy's scores, no two alike, and the best of them.

Drawn without replacement by stochastic beam search (Kool, van Hoof, Welling: ICML 2019): each partial placement has its
log probability with Gumbel noise, and those with the largest go on. That is the same as drawing whole plans one after
the other and throwing repetitions away, at the price of one drawing. All partial placements of a level are looked at by
one call and scored by another.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.improve import better_paths
from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.order import task_order
from ces_core.kernels.state import ROUGH, THOROUGH, State
from ces_core.policy.decode import Board, Scorer
from ces_core.policy.episode import Episode, begin, finish, place
from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH, observe
from ces_core.policy.judging import Sight
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

REFINED = 8
"""So many of the best plans have their flows' other paths tried."""


def best_of(view: Compact, scorer: Scorer, count: int, temperature: float, rng: np.random.Generator) -> Board | None:
    """The best of ``count`` plans drawn with odds ``exp(score / temperature)`` at each step, no two alike; fewer where
    there are fewer. Where all end without a plan, the task that was left over goes first, and all begins anew; None
    where that does not help either."""
    order = task_order(view)
    for _ in range(len(order)):
        board = Board.of(view, order)
        stuck = _draw(board, scorer, count, temperature, rng)
        if stuck < 0:
            return board
        order = np.concatenate([[stuck], order[order != stuck]])
    return None


def _draw(board: Board, scorer: Scorer, count: int, temperature: float, rng: np.random.Generator) -> int:
    """Leaves the best plan in ``board`` and returns -1, or returns the task that no partial plan had a node for."""
    view, order = board.view, board.episode.order
    tasks, nodes = view.fits.shape
    placed = np.zeros((1, tasks), dtype=np.int64)
    chance, noisy = np.zeros(1), np.zeros(1)
    said = np.full((1, tasks, nodes), -np.inf, dtype=np.float32)
    for level in range(tasks):
        seen = np.zeros((len(placed), nodes, NODE_WIDTH), dtype=np.float32)
        context = np.zeros((len(placed), CONTEXT_WIDTH), dtype=np.float32)
        mask = np.zeros((len(placed), nodes), dtype=np.bool_)
        _look(view, board.state, board.episode, board.sight, placed, level, seen, context, mask)
        open_ = np.flatnonzero(mask.any(axis=1))
        if not len(open_):
            return int(order[level])
        mask = mask[open_]
        scores = np.where(mask, scorer(seen[open_], context[open_], mask), np.float32(-np.inf))
        chances = chance[open_, None] + _log_softmax(scores.astype(np.float64) / temperature)
        noise = np.where(mask, _below(noisy[open_], chances, rng), -np.inf)
        best = np.argsort(-noise, axis=None, kind="stable")[: min(count, int(mask.sum()))]
        parents, chosen = np.divmod(best, nodes)
        placed, said = placed[open_[parents]], said[open_[parents]]
        placed[:, level] = chosen
        said[:, order[level]] = scores[parents]
        chance, noisy = chances[parents, chosen], noise[parents, chosen]
    worth = np.zeros(len(placed))
    _finish(view, board.work, board.state, board.episode, placed, ROUGH, worth)
    best = np.argsort(-worth, kind="stable")[:REFINED]
    _finish(view, board.work, board.state, board.episode, placed[best], THOROUGH, worth[: len(best)])
    at = int(np.argmax(worth[: len(best)]))
    if worth[at] == -math.inf:
        return int(order[-1])
    _finish(view, board.work, board.state, board.episode, placed[best[at : at + 1]], THOROUGH, worth[:1])
    board.scores[:] = said[best[at]]
    return -1


def _log_softmax(scores: FloatArray) -> FloatArray:
    lower: FloatArray = scores - scores.max(axis=1, keepdims=True)
    result: FloatArray = lower - np.log(np.exp(lower).sum(axis=1, keepdims=True))
    return result


def _below(most: FloatArray, chances: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(B, N) Gumbel noise around ``chances``, given that the largest of each row is ``most`` (B,): appendix B.3 of the
    paper, the way without overflow."""
    noise = chances + rng.gumbel(size=chances.shape)
    largest = noise.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = most[:, None] - noise + np.log1p(-np.exp(noise - largest))
        result: FloatArray = most[:, None] - np.maximum(excess, 0.0) - np.log1p(np.exp(-np.abs(excess)))
    return result


@compiled
def _look(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    placed: IntArray,
    level: int,
    nodes: NDArray[np.float32],
    context: NDArray[np.float32],
    mask: NDArray[np.bool_],
) -> None:
    """What is seen once the first ``level`` tasks are where each row of ``placed`` (B, T) says, in the tasks' order."""
    view, state, episode, sight = lent(view), lent(state), lent(episode), lent(sight)
    for b in range(len(placed)):
        mask[b] = False
        if _again(view, state, episode, placed[b], level):
            observe(view, state, episode, sight, nodes[b], context[b], mask[b])


@compiled
def _finish(
    view: Compact,
    work: FillWork,
    state: State,
    episode: Episode,
    placed: IntArray,
    refine: bool,
    worth: FloatArray,
) -> None:
    """Sets ``worth`` (B,) to the plans' composites, -inf where a plan does not fit. The state ends as the last."""
    view, work, state, episode = lent(view), lent(work), lent(state), lent(episode)
    for b in range(len(placed)):
        worth[b] = -math.inf
        if not _again(view, state, episode, placed[b], len(episode.order)):
            continue
        worth[b] = finish(view, work, state, episode)
        if refine and state.fits[0]:
            better_paths(view, work, state)
            worth[b] = state.score[0]


@compiled
def _again(view: Compact, state: State, episode: Episode, placed: IntArray, level: int) -> bool:
    fits = begin(view, state, episode)
    for i in range(level):
        fits = fits and place(view, state, episode, placed[i])
    return fits
