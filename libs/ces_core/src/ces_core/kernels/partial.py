"""What compiled code needs to know of tasks that are placed one after the other."""

from __future__ import annotations

from typing import Protocol

from ces_core.topology import IntArray


class Partial(Protocol):
    """T tasks and F flows; a task is placed with its flows to the tasks placed before it."""

    @property
    def order(self) -> IntArray: ...  # (T,) which task comes when

    @property
    def placement(self) -> IntArray: ...  # (T,)

    @property
    def is_open(self) -> IntArray: ...  # (T,) 1: not placed

    @property
    def trail(self) -> IntArray: ...  # (F,) flows carried so far, in order

    @property
    def carried(self) -> IntArray: ...  # (T + 1,) how many of the trail belong to the tasks before
