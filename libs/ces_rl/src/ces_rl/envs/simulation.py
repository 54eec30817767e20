"""What the compiled simulations of placement share: slots, each of which holds one job that is being placed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import Generic, Protocol, TypeVar

from ces_core.model.problem import BoolArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView
from ces_rl.problems.pool import FLOWS, NODES, RESOURCES, TASKS, Pool, view_of

RUNNING, SUCCESS, FAILURE = range(3)
"""The status of a slot: actions are to come, the job is placed, or the mask left nothing."""


@dataclass(frozen=True)
class SlotSize:
    """The largest problem that a slot holds."""

    tasks: int
    flows: int
    nodes: int
    resources: int

    @staticmethod
    def of(*pools: Pool) -> SlotSize:
        """The least size that holds every problem of ``pools``."""
        tasks, flows, nodes, resources = (
            max(int(pool.sizes[:, column].max()) for pool in pools) for column in (TASKS, FLOWS, NODES, RESOURCES)
        )
        return SlotSize(tasks, flows, nodes, resources)

    @staticmethod
    def complete(tasks: int, nodes: int) -> SlotSize:
        """Flows between all tasks, in one direction, and links between all nodes, in both."""
        return SlotSize(tasks, tasks * (tasks - 1) // 2, nodes, nodes * (nodes - 1))

    def check(self, pool: Pool, problems: IntArray, slots: int) -> None:
        """Raises ValueError unless ``problems`` (slots,), indices into the pool, fill all slots and fit into them."""
        if len(problems) != slots:
            raise ValueError(f"there are {slots} slots, not {len(problems)}")
        needed = SlotSize.of(pool)
        if any(more > most for more, most in zip(astuple(needed), astuple(self), strict=True)):
            raise ValueError(f"the pool holds problems of {needed}, there is room for {self}")


class SlotArrays(Protocol):
    """What the slots of all simulations have, one row for each."""

    @property
    def problem(self) -> IntArray: ...
    @property
    def status(self) -> IntArray: ...
    @property
    def mask(self) -> BoolArray: ...


Arrays = TypeVar("Arrays", bound=SlotArrays)


class Simulation(ABC, Generic[Arrays]):
    """Jobs being placed side by side: :meth:`start` them, then :meth:`step` until none is running."""

    def __init__(self, size: SlotSize, slots: Arrays) -> None:
        self.size, self.slots = size, slots
        self._pool: Pool | None = None

    def start(self, pool: Pool, problems: IntArray) -> None:
        """Begins on ``problems`` (slots,), indices into the pool. Raises ValueError as :meth:`SlotSize.check`."""
        self.size.check(pool, problems, len(self.slots.problem))
        self._pool = pool
        self.slots.problem[:] = problems
        self._start(pool)

    def step(self, actions: IntArray) -> None:
        """Takes one action in every running slot, ``actions`` (slots,); the others are left alone.

        Raises ValueError where a mask forbids the action: then the simulation must be started again.
        """
        if self._pool is None:
            raise ValueError("nothing was started")
        wrong = self._step(self._pool, actions)
        if wrong >= 0:
            raise ValueError(f"slot {wrong}: its mask forbids action {int(actions[wrong])}")

    @property
    def running(self) -> BoolArray:
        """(slots,)"""
        running: BoolArray = self.slots.status == RUNNING
        return running

    def view(self, i: int) -> ProblemView:
        """The problem in slot ``i``."""
        assert self._pool is not None
        return view_of(self._pool, int(self.slots.problem[i]))

    @abstractmethod
    def _start(self, pool: Pool) -> None: ...

    @abstractmethod
    def _step(self, pool: Pool, actions: IntArray) -> int:
        """A slot whose action was not allowed, else -1."""
