"""The environment, in batches: many jobs are placed at once, one task of each per step, in compiled code.

A game is one job: every action is the node of its next task, and the mask leaves only nodes where the task fits and its
flows to placed tasks find room for their minimums, so that no capacity is ever violated. Paths are chosen on the way;
at the end rates are set as every solver of CES sets them, and the game is worth its plan's composite. A game in which
the next task has no node left is lost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork, fill_work_of
from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.order import task_order
from ces_core.kernels.state import State
from ces_core.policy.episode import Episode, begin, finish, place
from ces_core.policy.features import CONTEXT_WIDTH, NODE_WIDTH, observe
from ces_core.policy.judging import Sight, new_sight
from ces_core.problem import FloatArray
from ces_core.topology import IntArray
from ces_train.pool import FLOWS, NODES, RESOURCES, TASKS, Pool, view_of

PLAYING, WON, LOST = range(3)


class Seats(NamedTuple):
    """Room for G games at once; what belongs to a game lies in its row."""

    floats: FloatArray  # (G, ...)
    ints: IntArray
    bools: NDArray[np.bool_]
    problem: IntArray  # (G,) of the pool
    status: IntArray  # (G,)
    worth: FloatArray  # (G,) the composite once won; 0 before and where lost
    nodes: NDArray[np.float32]  # (G, C, features) what is seen
    context: NDArray[np.float32]  # (G, features)
    mask: NDArray[np.bool_]  # (G, C) which nodes may be chosen


@dataclass(frozen=True)
class Most:
    """The largest problem that is expected."""

    tasks: int
    flows: int
    nodes: int
    resources: int

    @staticmethod
    def of(*pools: Pool) -> Most:
        tasks, flows, nodes, resources = (
            max(int(pool.sizes[:, column].max()) for pool in pools) for column in (TASKS, FLOWS, NODES, RESOURCES)
        )
        return Most(tasks, flows, nodes, resources)

    @staticmethod
    def complete(tasks: int, nodes: int) -> Most:
        """Flows between all tasks, in one direction, and links between all nodes, in both."""
        return Most(tasks, tasks * (tasks - 1) // 2, nodes, nodes * (nodes - 1))

    def check(self, pool: Pool, problems: IntArray, games: int) -> None:
        """Whether so many ``games`` can begin on ``problems`` (G,), indices into the pool. Raises ValueError for larger
        problems than these, and for another number of games."""
        if len(problems) != games:
            raise ValueError(f"there are {games} games, not {len(problems)}")
        needed = Most.of(pool)
        if any(more > most for more, most in zip(astuple(needed), astuple(self), strict=True)):
            raise ValueError(f"the pool holds problems of {needed}, there is room for {self}")


class Seated(Protocol):
    """What the seats of all environments have."""

    @property
    def problem(self) -> IntArray: ...
    @property
    def status(self) -> IntArray: ...
    @property
    def mask(self) -> NDArray[np.bool_]: ...


Room = TypeVar("Room", bound=Seated)


class Batch(ABC, Generic[Room]):
    """A batch of games. Make one for a size, :meth:`start` it on problems, :meth:`step` it until none is playing."""

    def __init__(self, most: Most, seats: Room) -> None:
        self.most, self.seats = most, seats
        self._pool: Pool | None = None

    def start(self, pool: Pool, problems: IntArray) -> None:
        """Begins a game on each of ``problems`` (G,), indices into the pool. See :meth:`Most.check`."""
        self.most.check(pool, problems, len(self.seats.problem))
        self._pool = pool
        self.seats.problem[:] = problems
        self._start(pool)

    def step(self, actions: IntArray) -> None:
        """Takes the next decision of every game that is playing, ``actions`` (G,); others are left alone.

        Raises ValueError where a mask forbids the action: then the games must be started anew.
        """
        if self._pool is None:
            raise ValueError("no game was started")
        wrong = self._step(self._pool, actions)
        if wrong >= 0:
            raise ValueError(f"game {wrong}: its mask forbids action {int(actions[wrong])}")

    @property
    def playing(self) -> NDArray[np.bool_]:
        """(G,)"""
        playing: NDArray[np.bool_] = self.seats.status == PLAYING
        return playing

    def view(self, i: int) -> Compact:
        """The problem of game ``i``."""
        assert self._pool is not None
        return view_of(self._pool, int(self.seats.problem[i]))

    @abstractmethod
    def _start(self, pool: Pool) -> None: ...

    @abstractmethod
    def _step(self, pool: Pool, actions: IntArray) -> int:
        """A game whose action was not allowed, else -1."""


class Games(Batch[Seats]):
    """A batch of games: an action is the node of the next task."""

    def __init__(self, count: int, most: Most) -> None:
        t, f, c, r = most.tasks, most.flows, most.nodes, most.resources
        seats = Seats(
            floats=np.zeros((count, 3 * f + 5 * c + 3 * r + 11)),
            ints=np.zeros((count, 6 * t + 4 * f + 2), dtype=np.int64),
            bools=np.zeros((count, 2 + f), dtype=np.bool_),
            problem=np.zeros(count, dtype=np.int64),
            status=np.full(count, LOST, dtype=np.int64),
            worth=np.zeros(count),
            nodes=np.zeros((count, c, NODE_WIDTH), dtype=np.float32),
            context=np.zeros((count, CONTEXT_WIDTH), dtype=np.float32),
            mask=np.zeros((count, c), dtype=np.bool_),
        )
        super().__init__(most, seats)
        self._sight, self._work = new_sight(t, c, f), fill_work_of(r, f)

    def game(self, i: int) -> tuple[Compact, State, Episode]:
        """What game ``i`` stands at, as the kernels of ``ces_core`` know it."""
        view = self.view(i)
        return view, state_of(view, self.seats, i), episode_of(view, self.seats, i)

    def _start(self, pool: Pool) -> None:
        _start(pool, self.seats, self._sight)

    def _step(self, pool: Pool, actions: IntArray) -> int:
        return _step(pool, self.seats, self._work, self._sight, actions)


@compiled
def state_of(view: Compact, seats: Seats, i: int) -> State:
    """The state of game ``i``; its arrays are parts of the seats."""
    x, y, z = seats.floats[i], seats.ints[i], seats.bools[i]
    t, c = view.fits.shape
    f, r = len(view.low), len(view.room)
    a = 10 + 3 * f
    b = a + 5 * c
    return State(
        node_of=y[:t],
        path=y[t : t + f],
        rates=x[10 : 10 + f],
        score=x[0:1],
        fits=z[:2],
        free=x[a : a + 3 * c].reshape((3, c)),
        use=x[a + 3 * c : b].reshape((2, c)),
        node_sums=x[1:5].reshape((2, 2)),
        ahead=x[:0],
        asked=x[5:8],
        spare=x[b : b + r],
        reserve=x[b + r : b + 2 * r],
        link_use=x[b + 2 * r : b + 3 * r],
        link_sums=x[8:10],
        trial_path=y[t + f : t + 2 * f],
        trial_rates=x[10 + f : 10 + 2 * f],
        guess=x[10 + 2 * f : a],
        affected=y[t + 2 * f : t + 3 * f],
        is_affected=z[2 : 2 + f],
    )


@compiled
def episode_of(view: Compact, seats: Seats, i: int) -> Episode:
    """The moves of game ``i``, likewise."""
    y = seats.ints[i]
    t, f = view.fits.shape[0], len(view.low)
    a = t + 3 * f
    b = a + 3 * t
    return Episode(
        order=y[a : a + t],
        placement=y[a + t : a + 2 * t],
        is_open=y[a + 2 * t : b],
        trail=y[b : b + f],
        carried=y[b + f : b + f + t + 1],
        level=y[b + f + t + 1 : b + f + t + 2],
    )


@compiled
def _sight_of(view: Compact, seats: Seats, i: int, sight: Sight) -> Sight:
    """``sight``, with the cheapest plan that was seen in game ``i``."""
    t, c = view.fits.shape
    f, r = len(view.low), len(view.room)
    a = 10 + 3 * f + 5 * c + 3 * r
    b = 5 * t + 4 * f + 2
    return Sight(
        width=sight.width,
        likely=sight.likely,
        hops=sight.hops,
        places=sight.places,
        cost=sight.cost,
        there=sight.there,
        path=sight.path,
        rate=sight.rate,
        end=seats.floats[i, a : a + 1],
        ended=seats.ints[i, b : b + t],
    )


@compiled
def _start(pool: Pool, seats: Seats, sight: Sight) -> None:
    pool, seats, sight = lent(pool), lent(seats), lent(sight)
    for i in range(len(seats.problem)):
        view = view_of(pool, seats.problem[i])
        state, episode = state_of(view, seats, i), episode_of(view, seats, i)
        episode.order[:] = task_order(view)
        for k in range(3):
            state.asked[k] = max(view.demand[:, k].sum(), 1e-300)
        seats.worth[i] = 0.0
        own = _sight_of(view, seats, i, sight)
        own.end[0] = math.inf
        fits = begin(view, state, episode)
        _look(view, state, episode, own, seats, i, fits)


@compiled
def _step(pool: Pool, seats: Seats, work: FillWork, sight: Sight, actions: IntArray) -> int:
    """Returns a game whose action was not allowed, else -1."""
    pool, seats, work, sight = lent(pool), lent(seats), lent(work), lent(sight)
    for i in range(len(seats.problem)):
        if seats.status[i] != PLAYING:
            continue
        node = actions[i]
        if node < 0 or node >= seats.mask.shape[1] or not seats.mask[i, node]:
            return i
        view = view_of(pool, seats.problem[i])
        state, episode = state_of(view, seats, i), episode_of(view, seats, i)
        fits = place(view, state, episode, node)
        if fits and episode.level[0] == len(episode.order):
            seats.worth[i] = finish(view, work, state, episode)
            seats.status[i] = WON
            seats.mask[i] = False
        else:
            _look(view, state, episode, _sight_of(view, seats, i, sight), seats, i, fits)
    return -1


@compiled
def _look(view: Compact, state: State, episode: Episode, sight: Sight, seats: Seats, i: int, fits: bool) -> None:
    seats.nodes[i] = 0.0
    seats.mask[i] = False
    found = 0
    if fits:
        found = observe(view, state, episode, sight, seats.nodes[i], seats.context[i], seats.mask[i])
    seats.status[i] = PLAYING if found else LOST
