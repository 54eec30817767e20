"""Decoding of scores into a plan: the best node at every step, with a quick search to avoid dead ends.

The scorer may be a trained policy or a rule to compare it with (:func:`by_cost`). To sample many
plans see :mod:`ces_core.learned.sampling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ces_core.compiled.jit import compiled, lent
from ces_core.learned.completion import completion
from ces_core.learned.episode import Episode, begin, finish, new_episode, place, take_back
from ces_core.learned.features import Observation, new_observations, observe
from ces_core.learned.node_features import Features, FeatureScratch, new_feature_scratch
from ces_core.learned.schema import NODE
from ces_core.model.problem import BoolArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork, fill_work
from ces_core.placement.path_choice import better_paths
from ces_core.placement.state import State, new_state
from ces_core.placement.task_order import task_order
from ces_core.placement.view import ProblemView

Scorer = Callable[[Features, Features, BoolArray], Features]
"""(B, N) scores from nodes (B, N, features), context (B, features) and mask (B, N)."""

BUDGET = 1000
"""The steps of one search for a completion."""
ORDERS = 1
"""Task orders tried, per task."""


def by_cost(nodes: Features, context: Features, mask: BoolArray) -> Features:
    """The rule without learning: a node scores by the cheapest known end through it."""
    return -nodes[:, :, NODE["known-end-above-least"]]


def scores_of(scorer: Scorer, seen: Observation, rows: IntArray) -> Features:
    """The scores of these rows of a batch; -inf where the mask is False."""
    mask = seen.mask[rows]
    found: Features = np.where(mask, scorer(seen.nodes[rows], seen.context[rows], mask), np.float32(-np.inf))
    return found


@dataclass(frozen=True)
class Board:
    """One placement in progress and its buffers; ``seen`` holds the latest observation as a batch of one, and
    ``scores`` (tasks, nodes) the latest scores of each task; -inf: not possible then."""

    view: ProblemView
    state: State
    work: FillWork
    episode: Episode
    scratch: FeatureScratch
    seen: Observation
    scores: Features

    @staticmethod
    def of(view: ProblemView, order: IntArray) -> Board:
        tasks, count = view.fits.shape
        return Board(
            view=view,
            state=new_state(view),
            work=fill_work(view),
            episode=new_episode(view, order),
            scratch=new_feature_scratch(tasks, count, len(view.low)),
            seen=new_observations(1, count),
            scores=np.full((len(order), count), -np.inf, dtype=np.float32),
        )

    @property
    def complete(self) -> bool:
        return int(self.episode.level[0]) == len(self.episode.order)

    def start(self) -> int:
        """Start over; the number of nodes for the first task, or -1 if flows between given nodes do not fit."""
        return first_look(self.view, self.state, self.episode, self.scratch, self._row())

    def step(self, scorer: Scorer) -> int:
        """Place the next task on the best node that holds it; the number of nodes for the task after it, or 0 if there
        is none or no node held this one."""
        scores = self.ask(scorer)
        return next_look(self.view, self.state, self.episode, self.scratch, scores, self._row())

    def look(self) -> int:
        """The number of nodes for the next task."""
        return observe(self.view, self.state, self.episode, self.scratch, self._row())

    def _row(self) -> Observation:
        return Observation(self.seen.nodes[0], self.seen.context[0], self.seen.mask[0])

    def odds(self, nodes: Sequence[int]) -> list[float]:
        """The probability that the scores gave to ``nodes[t]`` when task t was next, among all possible nodes: at
        temperature 1, whatever plans were sampled at. 0 for a task that was never scored."""
        most = self.scores.max(axis=1, keepdims=True)
        weights = np.exp(self.scores - np.where(np.isneginf(most), np.float32(0.0), most), dtype=np.float64)
        chosen: list[float] = (weights[np.arange(len(weights)), nodes] / np.maximum(weights.sum(axis=1), 1.0)).tolist()
        return chosen

    def holds(self, task: int) -> bool:
        """Whether some allowed node has capacity for the task, leaving its flows aside."""
        room = (self.view.demand[task][:, None] <= self.state.free).all(axis=0)
        return bool((room & self.view.fits[task]).any())

    def place(self, node: int) -> bool:
        return place(self.view, self.state, self.episode, node)

    def completion(self, places: IntArray, left_over: IntArray) -> bool:
        """As :func:`ces_core.learned.completion.completion`."""
        return completion(self.view, self.state, self.episode, BUDGET, places, left_over)

    def ask(self, scorer: Scorer) -> Features:
        """The scores of every node for the next task, after :meth:`look` found some; kept in ``scores``."""
        task = int(self.episode.order[self.episode.level[0]])
        self.scores[task] = np.where(self.seen.mask[0], scorer(*self.seen)[0], -np.inf)
        said: Features = self.scores[task]
        return said

    def retrace(self, plan: IntArray, level: int, scorer: Scorer) -> Features:
        """The scores along a feasible plan, asked at once for all tasks from number ``level`` on: as ``scores``, with
        those of earlier tasks unchanged."""
        said = self.scores.copy()
        tasks = self.episode.order[level:]
        seen = new_observations(len(tasks), self.view.fits.shape[1])
        retrace(self.view, self.state, self.episode, self.scratch, plan, level, seen)
        said[tasks] = -np.inf
        some = np.flatnonzero(seen.mask.any(axis=1))
        if len(some):
            said[tasks[some]] = scores_of(scorer, seen, some)
        return said

    def finish(self) -> bool:
        """Compute rates and paths once all tasks are placed; whether the plan fits."""
        return conclude(self.view, self.work, self.state, self.episode)


@dataclass(frozen=True)
class Stuck:
    """Why decoding failed: the task left over most often, and whether no node had capacity for it."""

    task: int
    crowded: bool


def greedy(view: ProblemView, scorer: Scorer) -> Board | Stuck:
    """The plan of the best node at every step. If a task has no node left, decoding starts over with the best node from
    which a quick search completes the placement, and if that fails, with the tasks in another order."""
    return _greedy(Board.of(view, task_order(view)), scorer)


def fortified(view: ProblemView, scorer: Scorer) -> Board | Stuck:
    """The greedy plan, or a better whole plan seen on the way: every observation of a node plays quick rules to the end
    and improves their plans, and the cheapest of all is kept. (Fortified rollout: Bertsekas, Tsitsiklis, Wu, Journal of
    Heuristics 3, 1997.)"""
    board = Board.of(view, task_order(view))
    found = _greedy(board, scorer)
    own = board.episode.placement
    if board.scratch.end[0] == math.inf or (isinstance(found, Board) and (board.scratch.ended == own).all()):
        return found
    plan = board.scratch.ended.copy()
    other = replace(board, state=new_state(view), episode=new_episode(view, board.episode.order))
    fits = follow(other.view, other.work, other.state, other.episode, plan)
    if not fits or (isinstance(found, Board) and found.state.score[0] >= other.state.score[0]):
        return found
    # Up to where the plans part, and of that task, too, the scorer has been asked already.
    apart = int(np.argmax((own != plan)[board.episode.order])) + 1 if isinstance(found, Board) else 0
    return replace(other, scores=board.retrace(plan, apart, scorer))


def _greedy(board: Board, scorer: Scorer) -> Board | Stuck:
    order = board.episode.order.copy()
    tasks = len(order)
    found = board.start()
    if found < 0:
        return Stuck(0, crowded=False)
    while found:
        found = board.step(scorer)
    if board.complete:
        board.finish()
        return board
    stuck = int(order[board.episode.level[0]])
    crowded = not board.holds(stuck)
    places, left_over = np.zeros(tasks, dtype=np.int64), np.zeros(tasks, dtype=np.int64)
    for _ in range(ORDERS * tasks):
        begin(board.view, board.state, board.episode)
        if board.completion(places, left_over) and _walk(board, scorer, places):
            board.finish()
            return board
        now = board.episode.order
        task = int(np.argmax(left_over))
        if now[0] == task:  # then it is no matter of order, or of this one alone: the next in question goes first
            task = int(now[1 + np.argmax(left_over[now[1:]])]) if tasks > 1 else task
        board.episode.order[:] = np.concatenate([[task], now[now != task]])
    return Stuck(stuck, crowded)


def _walk(board: Board, scorer: Scorer, places: IntArray) -> bool:
    """Place all tasks, each on the best node from which a quick search finds a completion, kept in ``places`` (T,).
    False if a task has no such node."""
    left_over = np.zeros(len(board.episode.order), dtype=np.int64)
    while not board.complete:
        task = int(board.episode.order[board.episode.level[0]])
        found = board.look()
        if not found:
            return False
        scores = board.ask(scorer)
        for node in np.argsort(-scores, kind="stable")[:found].tolist():
            if not board.place(node):
                continue
            if node == places[task] or board.completion(places, left_over):
                break
            take_back(board.view, board.state, board.episode)
        else:
            return False
    return True


# The work between two calls of a policy, each in one compiled call: passing these arrays to compiled code takes as long
# as a step itself.


@compiled
def first_look(view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, seen: Observation) -> int:
    """Start; the number of nodes for the first task, or -1 if flows between given nodes do not fit."""
    view, state, episode, scratch = lent(view), lent(state), lent(episode), lent(scratch)
    return observe(view, state, episode, scratch, seen) if begin(view, state, episode) else -1


@compiled
def next_look(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, scores: Features, seen: Observation
) -> int:
    """Place the next task on the best node by ``scores`` (N,), the first of equals, and observe the one after it; the
    number of nodes for that one. 0 after the last task, or if no node holds this one, which then stays open."""
    view, state, episode, scratch = lent(view), lent(state), lent(episode), lent(scratch)
    seen = lent(seen)
    mask = seen.mask
    while True:
        best = -1
        for n in range(len(mask)):
            if mask[n] and (best < 0 or scores[n] > scores[best]):
                best = n
        if best < 0:
            return 0
        if place(view, state, episode, best):
            break
        mask[best] = False
    if episode.level[0] == len(episode.order):
        return 0
    return observe(view, state, episode, scratch, seen)


@compiled
def conclude(view: ProblemView, work: FillWork, state: State, episode: Episode) -> bool:
    """Compute rates and paths once all tasks are placed; whether the plan fits."""
    view, work, state, episode = lent(view), lent(work), lent(state), lent(episode)
    finish(view, work, state, episode)
    better_paths(view, work, state)
    return bool(state.fits[0])


@compiled
def follow(view: ProblemView, work: FillWork, state: State, episode: Episode, plan: IntArray) -> bool:
    """Carry out the plan with task t on ``plan[t]``; False if it does not fit."""
    view, work, state, episode = lent(view), lent(work), lent(state), lent(episode)
    if not begin(view, state, episode):
        return False
    for task in episode.order:
        if not place(view, state, episode, plan[task]):
            return False
    return conclude(view, work, state, episode)


@compiled
def retrace(
    view: ProblemView,
    state: State,
    episode: Episode,
    scratch: FeatureScratch,
    plan: IntArray,
    level: int,
    seen: Observation,
) -> None:
    """Observations along a feasible plan, from task number ``level`` on: one row of the batch per task."""
    view, state, episode, scratch = lent(view), lent(state), lent(episode), lent(scratch)
    begin(view, state, episode)
    for i in range(len(episode.order)):
        if i >= level:
            row = Observation(seen.nodes[i - level], seen.context[i - level], seen.mask[i - level])
            observe(view, state, episode, scratch, row)
        place(view, state, episode, plan[episode.order[i]])
