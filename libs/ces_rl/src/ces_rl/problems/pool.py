"""Many problems in a few flat arrays, so that compiled code can take any of them in hand.

Each is a :class:`ces_core.placement.view.ProblemView` of its own size; :func:`view_of` hands it out without copying.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView

TASKS, FLOWS, NODES, RESOURCES, PATHS, LOADS, ENDS = range(7)
"""Columns of ``sizes``: T, F, C and R of ProblemView, and the lengths of ``path_resource`` and ``flows_of``."""


class Pool(NamedTuple):
    """I problems."""

    sizes: IntArray  # (I, 7)
    at: IntArray  # (I, 3) where each begins in the three that follow
    floats: FloatArray
    ints: IntArray
    bools: BoolArray

    def __repr__(self) -> str:
        return f"Pool({len(self.sizes)} problems)"


@compiled
def sizes_of(view: ProblemView) -> IntArray:
    """(7,) as in :class:`Pool`."""
    sizes = np.zeros(7, dtype=np.int64)
    sizes[0], sizes[2] = view.fits.shape
    sizes[1] = len(view.low)
    sizes[3] = len(view.residual)
    sizes[4] = len(view.path_first) - 1
    sizes[5] = len(view.path_resource)
    sizes[6] = len(view.flows_of)
    return sizes


@compiled
def lengths(sizes: IntArray) -> tuple[int, int, int]:
    """How many floats, ints and bools a problem of these sizes takes."""
    t, f, c, r, p, n, k = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]
    floats = 7 * c + 6 + 3 * t + 2 * f + n + 3 * r + 6
    ints = c + 2 * f + t + 1 + k + c * c + 1 + p + 1 + n
    return floats, ints, t * c


@compiled
def view_of(pool: Pool, i: int) -> ProblemView:
    """Problem ``i``; its arrays are parts of the pool."""
    sizes = pool.sizes[i]
    t, f, c, r, p, n, k = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]
    at, now, place = pool.at[i, 0], pool.at[i, 1], pool.at[i, 2]
    x, y = pool.floats[at:], pool.ints[now:]
    # Floats: first what has a size of its own, then what goes by C, T, F, R.
    b = 12 + 7 * c
    d = b + 3 * t
    e = d + 2 * f + n
    # Ints.
    g = c + 2 * f
    h = g + t + 1 + k
    j = h + c * c + 1
    return ProblemView(
        nodes=y[:c],
        free=x[12 : 12 + 3 * c].reshape((3, c)),
        use=x[12 + 3 * c : 12 + 5 * c].reshape((2, c)),
        inverse=x[12 + 5 * c : b].reshape((2, c)),
        node_count=x[0:2],
        node_sum=x[2:4],
        node_squares=x[4:6],
        demand=x[b:d].reshape((t, 3)),
        fits=pool.bools[place : place + t * c].reshape((t, c)),
        flow_src=y[c : c + f],
        flow_dst=y[c + f : g],
        low=x[d : d + f],
        high=x[d + f : d + 2 * f],
        flows_first=y[g : g + t + 1],
        flows_of=y[g + t + 1 : h],
        pair_first=y[h:j],
        path_first=y[j : j + p + 1],
        path_resource=y[j + p + 1 : j + p + 1 + n],
        path_times=x[d + 2 * f : e],
        residual=x[e : e + r],
        link_use=x[e + r : e + 2 * r],
        link_inverse=x[e + 2 * r : e + 3 * r],
        link_count=x[6],
        link_sum=x[7],
        link_squares=x[8],
        weights=x[9:12],
        worth=x[:0],
        cards=x[:0].reshape((0, 0)),
        per_card=0.0,
    )


@compiled
def write(pool: Pool, i: int, view: ProblemView) -> None:
    """Copies ``view`` to place ``i``, whose ``sizes`` and ``at`` are set."""
    at = pool.at[i, 0]
    pool.floats[at + 6] = view.link_count
    pool.floats[at + 7] = view.link_sum
    pool.floats[at + 8] = view.link_squares
    there = view_of(pool, i)
    there.nodes[:] = view.nodes
    there.free[:] = view.free
    there.use[:] = view.use
    there.inverse[:] = view.inverse
    there.node_count[:] = view.node_count
    there.node_sum[:] = view.node_sum
    there.node_squares[:] = view.node_squares
    there.demand[:] = view.demand
    there.fits[:] = view.fits
    there.flow_src[:] = view.flow_src
    there.flow_dst[:] = view.flow_dst
    there.low[:] = view.low
    there.high[:] = view.high
    there.flows_first[:] = view.flows_first
    there.flows_of[:] = view.flows_of
    there.pair_first[:] = view.pair_first
    there.path_first[:] = view.path_first
    there.path_resource[:] = view.path_resource
    there.path_times[:] = view.path_times
    there.residual[:] = view.residual
    there.link_use[:] = view.link_use
    there.link_inverse[:] = view.link_inverse
    there.weights[:] = view.weights


def pack(views: Sequence[ProblemView]) -> Pool:
    """A pool of these problems, which may be of any sizes."""
    sizes = np.array([sizes_of(view) for view in views], dtype=np.int64)
    each = np.array([lengths(row) for row in sizes], dtype=np.int64)
    ends = each.cumsum(axis=0)
    floats, ints, bools = ends[-1].tolist()
    pool = Pool(
        sizes=sizes,
        at=ends - each,
        floats=np.zeros(floats),
        ints=np.zeros(ints, dtype=np.int64),
        bools=np.zeros(bools, dtype=np.bool_),
    )
    for i, view in enumerate(views):
        # Read-only arrays are another type to compiled code, and another compilation.
        fixed = {name: value.copy() for name, value in view._asdict().items() if _is_fixed(value)}
        write(pool, i, view._replace(**fixed))
    return pool


def _is_fixed(value: object) -> bool:
    return isinstance(value, np.ndarray) and not value.flags.writeable
