"""How scores become a plan: the best node at every step, with steps back where that leads nowhere. (For many plans that
are drawn by the scores see :mod:`ces_core.policy.draws`.)

Who scores does not matter here: a trained policy, or a rule to compare it with (:func:`by_chance`, :func:`by_cost`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork, fill_work
from ces_core.kernels.improve import better_paths
from ces_core.kernels.order import task_order
from ces_core.kernels.state import State, new_state
from ces_core.policy.episode import Episode, begin, finish, new_episode, place, take_back
from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH, observe
from ces_core.policy.judging import Sight, new_sight
from ces_core.policy.schema import NODE_FEATURES
from ces_core.topology import IntArray

Scorer = Callable[[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]], NDArray[np.float32]]
"""(B, N) scores from nodes (B, N, features), context (B, features) and mask (B, N)."""

STEPS_BACK = 3
"""So many steps back per task are taken before another order of the tasks is tried."""
NEAR = 0.3
"""What the cost at once counts in :func:`by_cost`, beside that at the end."""
ORDERS = 3
"""So many orders per task are tried."""


def by_chance(nodes: NDArray[np.float32], context: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """All nodes alike."""
    return np.zeros(mask.shape, dtype=np.float32)


def by_cost(nodes: NDArray[np.float32], context: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The rule without learning: the less it costs where a quick rule ends from there, and at once, the better."""
    names = [name for name, _ in NODE_FEATURES]
    ahead, near = names.index("end-above-least"), names.index("cost-with-next-above-least")
    return -nodes[:, :, ahead] - np.float32(NEAR) * nodes[:, :, near]


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
        count = view.fits.shape[1]
        return Board(
            view=view,
            state=new_state(view),
            work=fill_work(view),
            episode=new_episode(view, order),
            sight=new_sight(view),
            nodes=np.zeros((1, count, NODE_WIDTH), dtype=np.float32),
            context=np.zeros((1, CONTEXT_WIDTH), dtype=np.float32),
            mask=np.zeros((1, count), dtype=np.bool_),
            scores=np.full((len(order), count), -np.inf, dtype=np.float32),
        )

    @property
    def complete(self) -> bool:
        return int(self.episode.level[0]) == len(self.episode.order)

    def begin(self) -> bool:
        return begin(self.view, self.state, self.episode)

    def look(self) -> int:
        """How many nodes the next task may go to."""
        seen = self.nodes[0], self.context[0], self.mask[0]
        return observe(self.view, self.state, self.episode, self.sight, *seen)

    def odds(self, nodes: Sequence[int]) -> list[float]:
        """The probability that its scores gave to ``nodes[t]`` when task t was next, among all nodes that were possible
        then: the scorer's own, whatever the temperature of the draw."""
        weights = np.exp(self.scores - self.scores.max(axis=1, keepdims=True), dtype=np.float64)
        chosen: list[float] = (weights[np.arange(len(weights)), nodes] / weights.sum(axis=1)).tolist()
        return chosen

    def holds(self, task: int) -> bool:
        """Whether some node that the task may use has room for it, whatever becomes of its flows."""
        room = (self.view.demand[task][:, None] <= self.state.free).all(axis=0)
        return bool((room & self.view.fits[task]).any())

    def place(self, node: int) -> bool:
        return place(self.view, self.state, self.episode, node)

    def finish(self) -> float:
        return finish(self.view, self.work, self.state, self.episode)


@dataclass(frozen=True)
class Stuck:
    """What stood in the way: the task that was left over most often, and whether no node had room for it."""

    task: int
    crowded: bool


def greedy(view: Compact, scorer: Scorer) -> Board | Stuck:
    """The plan of the best node at every step. Where a task has no node left, steps are taken back, next-best node by
    next-best node; where that takes too long, it all begins anew with that task first."""
    order = task_order(view)
    tasks = len(order)
    board = Board.of(view, order.copy())
    left_over = np.zeros(tasks, dtype=np.int64)
    crowded = np.zeros(tasks, dtype=np.bool_)
    for _ in range(ORDERS * tasks):
        if not board.begin():
            return Stuck(0, crowded=False)
        task = _walk(board, scorer, left_over, crowded)
        if task < 0:
            board.finish()
            better_paths(view, board.work, board.state)
            return board
        now = board.episode.order
        if now[0] == task:  # then it is no matter of order, or of this one alone: the next in question goes first
            task = int(now[1 + np.argmax(left_over[now[1:]])]) if tasks > 1 else task
        board.episode.order[:] = np.concatenate([[task], now[now != task]])
    task = int(np.argmax(left_over))
    return Stuck(task, bool(crowded[task]))


def _walk(board: Board, scorer: Scorer, left_over: IntArray, crowded: NDArray[np.bool_]) -> int:
    """Places all tasks, or gives up and returns the one that was left over last; -1 where none was."""
    order = board.episode.order
    ahead: list[list[int]] = []  # per level the nodes not tried yet, the best last
    back = STEPS_BACK * len(order)
    while not board.complete:
        if len(ahead) == int(board.episode.level[0]):
            found = board.look()
            if found:
                scores = np.where(board.mask[0], scorer(board.nodes, board.context, board.mask)[0], -np.inf)
                board.scores[order[len(ahead)]] = scores
                ahead.append(np.argsort(scores, kind="stable")[-found:].tolist())
            else:
                stuck = int(order[len(ahead)])
                left_over[stuck] += 1
                crowded[stuck] = not board.holds(stuck)
                ahead.append([])
        if ahead[-1]:
            board.place(ahead[-1].pop())
            continue
        ahead.pop()
        back -= 1
        if not ahead or back < 0:
            return stuck
        take_back(board.view, board.state, board.episode)
    return -1
