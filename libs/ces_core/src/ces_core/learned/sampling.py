"""Sampling of distinct plans by a policy's scores, and the best of them.

Plans are drawn without replacement by stochastic beam search (Kool, van Hoof, Welling: ICML 2019): each partial
placement has its log probability plus Gumbel noise, and the largest go on. This equals drawing whole plans one after
the other and dropping repetitions, at the price of one draw. All partial placements of a level are observed in one call
and scored in another.
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.compiled.jit import compiled, lent
from ces_core.learned.decoder import Board, Scorer, scores_of
from ces_core.learned.episode import Episode, begin, finish, place
from ces_core.learned.features import Observation, new_observations, observe
from ces_core.learned.node_features import FeatureScratch
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork
from ces_core.placement.path_choice import better_paths
from ces_core.placement.state import State
from ces_core.placement.task_order import task_order
from ces_core.placement.trial import ROUGH, THOROUGH
from ces_core.placement.view import ProblemView

REFINED = 8
"""Alternative paths are tried for the flows of this many of the best plans."""


def best_of(
    view: ProblemView, scorer: Scorer, count: int, temperature: float, rng: np.random.Generator
) -> Board | None:
    """The best of ``count`` distinct plans drawn with odds ``exp(score / temperature)`` at each step, or of all plans
    if there are fewer. If no draw completes a plan, the task left over goes first and sampling starts over; None if
    that does not help either."""
    order = task_order(view)
    for _ in range(len(order)):
        board = Board.of(view, order)
        stuck = _draw(board, scorer, count, temperature, rng)
        if stuck < 0:
            return board
        order = np.concatenate([[stuck], order[order != stuck]])
    return None


def _draw(board: Board, scorer: Scorer, count: int, temperature: float, rng: np.random.Generator) -> int:
    """Leave the best plan in ``board`` and return -1, or return the task for which no partial plan had a node."""
    view, order = board.view, board.episode.order
    tasks, nodes = view.fits.shape
    placed = np.zeros((1, tasks), dtype=np.int64)
    log_prob, noisy = np.zeros(1), np.zeros(1)
    said = np.full((1, tasks, nodes), -np.inf, dtype=np.float32)
    for level in range(tasks):
        seen = new_observations(len(placed), nodes)
        _look(view, board.state, board.episode, board.scratch, placed, level, seen)
        open_ = np.flatnonzero(seen.mask.any(axis=1))
        if not len(open_):
            return int(order[level])
        mask, scores = seen.mask[open_], scores_of(scorer, seen, open_)
        log_probs = log_prob[open_, None] + _log_softmax(scores.astype(np.float64) / temperature)
        noise = np.where(mask, _below(noisy[open_], log_probs, rng), -np.inf)
        best = np.argsort(-noise, axis=None, kind="stable")[: min(count, int(mask.sum()))]
        parents, chosen = np.divmod(best, nodes)
        placed, said = placed[open_[parents]], said[open_[parents]]
        placed[:, level] = chosen
        said[:, order[level]] = scores[parents]
        log_prob, noisy = log_probs[parents, chosen], noise[parents, chosen]
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


def _below(most: FloatArray, log_probs: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(B, N) Gumbel noise around ``log_probs``, given that each row's largest is ``most`` (B,): appendix B.3 of the
    paper, the form without overflow."""
    noise = log_probs + rng.gumbel(size=log_probs.shape)
    largest = noise.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = most[:, None] - noise + np.log1p(-np.exp(noise - largest))
        result: FloatArray = most[:, None] - np.maximum(excess, 0.0) - np.log1p(np.exp(-np.abs(excess)))
    return result


@compiled
def _look(
    view: ProblemView,
    state: State,
    episode: Episode,
    scratch: FeatureScratch,
    placed: IntArray,
    level: int,
    seen: Observation,
) -> None:
    """Observations with the first ``level`` tasks placed as in each row of ``placed`` (B, T), in the tasks' order."""
    view, state, episode, scratch = lent(view), lent(state), lent(episode), lent(scratch)
    for b in range(len(placed)):
        seen.mask[b] = False
        if _again(view, state, episode, placed[b], level):
            observe(view, state, episode, scratch, Observation(seen.nodes[b], seen.context[b], seen.mask[b]))


@compiled
def _finish(
    view: ProblemView, work: FillWork, state: State, episode: Episode, placed: IntArray, refine: bool, worth: FloatArray
) -> None:
    """Set ``worth`` (B,) to the plans' composites, -inf for a plan that does not fit. The state ends as the last
    plan."""
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
def _again(view: ProblemView, state: State, episode: Episode, placed: IntArray, level: int) -> bool:
    fits = begin(view, state, episode)
    for i in range(level):
        fits = fits and place(view, state, episode, placed[i])
    return fits
