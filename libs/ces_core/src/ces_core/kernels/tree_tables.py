"""The arrays that the bound of the tree search works with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ces_core.kernels.jit import compiled
from ces_core.kernels.tree_form import Form
from ces_core.problem import FloatArray
from ces_core.topology import IntArray

CELLS = 6
"""Intervals of the mean that the bound on a standard deviation tells apart."""


class Tables(NamedTuple):
    """What :func:`build` works with; ``scale``, ``row``, ``limit`` outlive it, one per task (the last: for trials)."""

    scale: FloatArray  # (T + 1, 2) factors of the links' squares and sum in costs
    row: FloatArray  # (T + 1, F, C) least cost of a flow that closes with the task, by the task's node
    limit: FloatArray  # (T + 1, 6, 2) ranges of the three deviations and means that are searched
    range: FloatArray  # (6, 2) what the latest build found possible within its limits
    pair: FloatArray  # (tables, C, C) what is left between two tasks that talk
    domain: IntArray  # (T, C)
    size: IntArray  # (T,)
    squares: FloatArray  # (F, Q) what each path would add now: squares, sum, loss
    sums: FloatArray
    lost: FloatArray
    cell: FloatArray  # (3, CELLS)
    first: FloatArray  # (C,) scratch
    second: FloatArray
    left: FloatArray  # (sets,) what is left of each set's cost on its node
    active: IntArray  # (sets,) per node, from its first set on: the sets that are possible now
    sets: IntArray  # (C,) how many
    least: FloatArray  # (C,) the least of ``left``


def fresh_tables(form: Form) -> Tables:
    tasks, count = form.fits.shape
    flows, paths, sets = max(1, len(form.src)), len(form.kappa), len(form.set_first) - 1
    return Tables(
        scale=np.zeros((tasks + 1, 2)),
        row=np.zeros((tasks + 1, flows, count)),
        limit=np.array([[[0.0, np.inf]] * 6] * (tasks + 1)),
        range=np.zeros((6, 2)),
        pair=np.zeros((max(1, len(form.pairs)), count, count)),
        domain=np.zeros((tasks, count), dtype=np.int64),
        size=np.zeros(tasks, dtype=np.int64),
        squares=np.zeros((flows, paths)),
        sums=np.zeros((flows, paths)),
        lost=np.zeros((flows, paths)),
        cell=np.zeros((3, CELLS)),
        first=np.zeros(count),
        second=np.zeros(count),
        left=np.zeros(max(1, sets)),
        active=np.zeros(max(1, sets), dtype=np.int64),
        sets=np.zeros(count, dtype=np.int64),
        least=np.zeros(count),
    )


@compiled
def together(one: FloatArray, other: FloatArray, free: FloatArray) -> bool:
    """Whether two demands fit into what a node has free."""
    return bool(one[0] + other[0] <= free[0] and one[1] + other[1] <= free[1] and one[2] + other[2] <= free[2])


@compiled
def ends(tables: Tables, end: int, placed: int, single: IntArray) -> IntArray:
    if placed >= 0:
        single[0] = placed
        return single
    return tables.domain[end, : tables.size[end]]
