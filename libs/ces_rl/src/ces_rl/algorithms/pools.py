"""Pools of experience that is learned from again and again: the newest replaces the oldest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_rl.needs import torch

Rows = NDArray[Any]


class Steps(NamedTuple):
    """N steps. ``action``: as the critic takes it, (N, width); ``mask`` and ``later_mask``: allowed actions before and
    after; ``over``: 1 where the episode ended."""

    observation: tuple[Any, ...]
    mask: Any
    action: Any
    reward: Any
    later: tuple[Any, ...]
    later_mask: Any
    over: Any


class Pool:
    """Keeps the newest ``size`` steps."""

    def __init__(self, size: int) -> None:
        self.size, self.filled, self._next = size, 0, 0
        self._columns: list[Rows] = []
        self._parts = 0

    def add(self, steps: Steps) -> None:
        """Of arrays."""
        flat = _flat(steps)
        if not self._columns:
            self._parts = len(steps.observation)
            self._columns = [np.zeros((self.size, *each.shape[1:]), each.dtype) for each in flat]
        places = (self._next + np.arange(len(steps.reward))) % self.size
        for column, rows in zip(self._columns, flat, strict=True):
            column[places] = rows
        self._next = int(places[-1] + 1) % self.size
        self.filled = min(self.size, self.filled + len(places))

    def draw(self, rng: np.random.Generator, count: int) -> Steps:
        """``count`` of them, as arrays; one may come twice."""
        places = rng.integers(self.filled, size=count)
        return _steps([column[places] for column in self._columns], self._parts)

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "parts": self._parts,
            "columns": [torch.from_numpy(column[: self.filled].copy()) for column in self._columns],
        }

    def restore(self, state: dict[str, Any]) -> None:
        rows = [each.numpy() for each in state["columns"]]
        self._columns, self.filled, self._next, self._parts = [], 0, 0, 0
        if rows and len(rows[0]):
            self.add(_steps(rows, state["parts"]))
        self._next = state["next"]


def together(parts: Sequence[Steps]) -> Steps:
    """Of arrays, as tensors."""
    columns = zip(*(_flat(part) for part in parts), strict=True)
    return _steps([torch.from_numpy(np.concatenate(column)) for column in columns], len(parts[0].observation))


def _flat(steps: Steps) -> list[Any]:
    return [*steps.observation, steps.mask, steps.action, steps.reward, *steps.later, steps.later_mask, steps.over]


def _steps(columns: Sequence[Any], parts: int) -> Steps:
    mask, action, reward = columns[parts : parts + 3]
    later, (later_mask, over) = columns[parts + 3 : -2], columns[-2:]
    return Steps(tuple(columns[:parts]), mask, action, reward, tuple(later), later_mask, over)
