"""How scores become a plan: the best node at every step, with a quick search beside it where that leads nowhere. (For
many plans that are drawn by the scores see :mod:`ces_core.policy.draws`.)

Who scores does not matter here: a trained policy, or a rule to compare it with (:func:`by_chance`, :func:`by_cost`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork, fill_work
from ces_core.kernels.order import task_order
from ces_core.kernels.state import State, new_state
from ces_core.policy.completing import completion
from ces_core.policy.episode import Episode, begin, new_episode, place, take_back
from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH, observe
from ces_core.policy.judging import Sight, new_sight
from ces_core.policy.moves import conclude, first_look, follow, next_look, retrace
from ces_core.policy.schema import NODE_FEATURES
from ces_core.topology import IntArray

Scorer = Callable[[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]], NDArray[np.float32]]
"""(B, N) scores from nodes (B, N, features), context (B, features) and mask (B, N)."""

BUDGET = 1000
"""So many steps a search for places takes."""
ORDERS = 1
"""So many orders per task are tried."""


def by_chance(nodes: NDArray[np.float32], context: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """All nodes alike."""
    return np.zeros(mask.shape, dtype=np.float32)


def by_cost(nodes: NDArray[np.float32], context: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The rule without learning: the cheaper the best end known through the node, the better."""
    return -nodes[:, :, [name for name, _ in NODE_FEATURES].index("known-end-above-least")]


@dataclass(frozen=True)
class Board:
    """One game and what it needs; ``nodes``, ``context`` and ``mask`` hold what was seen last, as a batch of one, and
    ``scores`` (tasks, nodes) what was said of each task the last time that it was next; -inf: not possible then."""

    view: Compact
    state: State
    work: FillWork
    episode: Episode
    sight: Sight
    nodes: NDArray[np.float32]
    context: NDArray[np.float32]
    mask: NDArray[np.bool_]
    scores: NDArray[np.float32]

    @staticmethod
    def of(view: Compact, order: IntArray) -> Board:
        tasks, count = view.fits.shape
        return Board(
            view=view,
            state=new_state(view),
            work=fill_work(view),
            episode=new_episode(view, order),
            sight=new_sight(tasks, count, len(view.low)),
            nodes=np.zeros((1, count, NODE_WIDTH), dtype=np.float32),
            context=np.zeros((1, CONTEXT_WIDTH), dtype=np.float32),
            mask=np.zeros((1, count), dtype=np.bool_),
            scores=np.full((len(order), count), -np.inf, dtype=np.float32),
        )

    @property
    def complete(self) -> bool:
        return int(self.episode.level[0]) == len(self.episode.order)

    def start(self) -> int:
        """Begins anew: how many nodes the first task may go to; -1 where what is given finds no room."""
        return first_look(self.view, self.state, self.episode, self.sight, *self._seen())

    def step(self, scorer: Scorer) -> int:
        """Places the next task on the best node that holds it: how many nodes the one after it may go to, and 0 where
        there is none, or no node held this one."""
        scores = self.ask(scorer)
        return next_look(self.view, self.state, self.episode, self.sight, scores, *self._seen())

    def begin(self) -> bool:
        return begin(self.view, self.state, self.episode)

    def look(self) -> int:
        """How many nodes the next task may go to."""
        return observe(self.view, self.state, self.episode, self.sight, *self._seen())

    def _seen(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        return self.nodes[0], self.context[0], self.mask[0]

    def odds(self, nodes: Sequence[int]) -> list[float]:
        """The probability that its scores gave to ``nodes[t]`` when task t was next, among all nodes that were possible
        then: the scorer's own, whatever the temperature of the draw. 0 for a task that it was never asked about."""
        most = self.scores.max(axis=1, keepdims=True)
        weights = np.exp(self.scores - np.where(np.isneginf(most), np.float32(0.0), most), dtype=np.float64)
        chosen: list[float] = (weights[np.arange(len(weights)), nodes] / np.maximum(weights.sum(axis=1), 1.0)).tolist()
        return chosen

    def holds(self, task: int) -> bool:
        """Whether some node that the task may use has room for it, whatever becomes of its flows."""
        room = (self.view.demand[task][:, None] <= self.state.free).all(axis=0)
        return bool((room & self.view.fits[task]).any())

    def place(self, node: int) -> bool:
        return place(self.view, self.state, self.episode, node)

    def completion(self, places: IntArray, left_over: IntArray) -> bool:
        """As :func:`ces_core.policy.completing.completion`."""
        return completion(self.view, self.state, self.episode, BUDGET, places, left_over)

    def ask(self, scorer: Scorer) -> NDArray[np.float32]:
        """The scorer's word on every node, once :meth:`look` has found some for the next task; kept in ``scores``."""
        task = int(self.episode.order[self.episode.level[0]])
        self.scores[task] = np.where(self.mask[0], scorer(self.nodes, self.context, self.mask)[0], -np.inf)
        said: NDArray[np.float32] = self.scores[task]
        return said

    def follow(self, plan: IntArray) -> bool:
        """Carries out the plan with task t on ``plan[t]``; False where it does not fit."""
        return follow(self.view, self.work, self.state, self.episode, plan)

    def retrace(self, plan: IntArray, level: int, scorer: Scorer) -> NDArray[np.float32]:
        """What the scorer says on the way to a plan that fits, asked once for all tasks from number ``level`` on: as
        ``scores``, with those of earlier tasks as they are."""
        said = self.scores.copy()
        tasks, count = self.episode.order[level:], self.view.fits.shape[1]
        nodes = np.zeros((len(tasks), count, NODE_WIDTH), dtype=np.float32)
        context = np.zeros((len(tasks), CONTEXT_WIDTH), dtype=np.float32)
        mask = np.zeros((len(tasks), count), dtype=np.bool_)
        retrace(self.view, self.state, self.episode, self.sight, plan, level, nodes, context, mask)
        said[tasks] = -np.inf
        some = mask.any(axis=1)
        if some.any():
            mask = mask[some]
            said[tasks[some]] = np.where(mask, scorer(nodes[some], context[some], mask), -np.inf)
        return said

    def finish(self) -> bool:
        """Settles rates and paths once all tasks are placed; whether that fits."""
        return conclude(self.view, self.work, self.state, self.episode)


@dataclass(frozen=True)
class Stuck:
    """What stood in the way: the task that was left over most often, and whether no node had room for it."""

    task: int
    crowded: bool


def greedy(view: Compact, scorer: Scorer) -> Board | Stuck:
    """The plan of the best node at every step. Where a task has no node left, all begins anew with the best node from
    which a quick search still finds places for all, and where it finds none, with tasks in another order."""
    return _greedy(Board.of(view, task_order(view)), scorer)


def fortified(view: Compact, scorer: Scorer) -> Board | Stuck:
    """The same, or a better whole plan that was seen on the way: every look at a node plays quick rules to the end,
    mends what they come to, and the cheapest plan of all is at hand. (Fortified rollout: Bertsekas, Tsitsiklis, Wu,
    Journal of Heuristics 3, 1997.)"""
    board = Board.of(view, task_order(view))
    found = _greedy(board, scorer)
    own = board.episode.placement
    if board.sight.end[0] == math.inf or (isinstance(found, Board) and (board.sight.ended == own).all()):
        return found
    plan = board.sight.ended.copy()
    other = replace(board, state=new_state(view), episode=new_episode(view, board.episode.order))
    if not other.follow(plan) or (isinstance(found, Board) and found.state.score[0] >= other.state.score[0]):
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
        board.begin()
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
    """Places all tasks, each on the best node from which a quick search finds places for all others; ``places`` (T,):
    where all may go. False where one has no such node."""
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
