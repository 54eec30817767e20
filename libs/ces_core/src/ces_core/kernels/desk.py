"""The ways from Python into the search: everything that it works on is handed over once, as one thing.

A call of compiled code takes apart every tuple of arrays that it is given, which for the arrays of a search costs as
much as looking at several placements. What lies on a desk is taken apart once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ces_core.kernels.anneal import Walk, anneal, back_to_best, new_walk
from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork, fill_work
from ces_core.kernels.improve import improve
from ces_core.kernels.jit import COMPILED, compiled
from ces_core.kernels.order import task_order
from ces_core.kernels.rebuild import Caution, Tree, new_tree, rebuild
from ces_core.kernels.state import State, install, new_state

if TYPE_CHECKING or not COMPILED:

    class Desk(NamedTuple):
        """One problem, the state of its search, and what the search writes on."""

        problem: Compact
        work: FillWork
        state: State
        walk: Walk
        tree: Tree

else:
    from numba.core import types
    from numba.experimental import structref

    @structref.register
    class DeskType(types.StructRef):
        """The compiler's type of a desk."""

        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(kind)) for name, kind in fields)

    class Desk(structref.StructRefProxy):
        """One problem, the state of its search, and what the search writes on; opaque to Python."""

    structref.define_proxy(Desk, DeskType, ["problem", "work", "state", "walk", "tree"])


@compiled
def desk_for(problem: Compact, random: int) -> tuple[FillWork, State, Walk, Tree, Desk]:
    """All that a search of the problem needs, as arrays for Python and, the same arrays, as a desk. ``random``: where
    its random numbers begin."""
    work, state, walk, tree = fill_work(problem), new_state(problem), new_walk(problem, random), new_tree(problem)
    return work, state, walk, tree, Desk(problem, work, state, walk, tree)


@compiled
def spread_out(desk: Desk) -> None:
    """Puts each task on the node with most CPU left that it may use, whatever that breaks: something to begin with.
    Raises ValueError where there is no node at all."""
    view = desk.problem
    if not view.fits.shape[1]:
        raise ValueError("there is no candidate")
    placement = np.zeros(len(view.fits), dtype=np.int64)
    for t in range(len(placement)):
        roomiest = -1.0
        for n in range(view.fits.shape[1]):
            if view.fits[t, n] and view.free[0, n] > roomiest:
                roomiest = view.free[0, n]
                placement[t] = n
    install(view, desk.work, desk.state, placement)


@compiled
def begin(desk: Desk) -> None:
    """Has :func:`grow` begin anew, with the tasks in the order in which they are best placed."""
    desk.tree.order[:] = task_order(desk.problem)
    desk.tree.level[0] = -1


@compiled
def grow(desk: Desk, caution: Caution, count: int, limit: int, breadth: int) -> int:
    """:func:`~ces_core.kernels.rebuild.rebuild` of the first ``count`` tasks in the tree's order."""
    return rebuild(desk.problem, desk.work, desk.state, desk.tree, caution, count, limit, breadth)


@compiled
def cool(desk: Desk, steps: int, hot: float, cold: float, first: int, last: int) -> int:
    """:func:`~ces_core.kernels.anneal.anneal`."""
    return anneal(desk.problem, desk.work, desk.state, desk.walk, steps, hot, cold, first, last)


@compiled
def mend(desk: Desk, caution: Caution, size: int, limit: int, breadth: int, patience: int, budget: int) -> int:
    """:func:`~ces_core.kernels.improve.improve`."""
    view, work, state, walk, tree = desk.problem, desk.work, desk.state, desk.walk, desk.tree
    return improve(view, work, state, walk, tree, caution, size, limit, breadth, patience, budget)


@compiled
def return_to_best(desk: Desk) -> None:
    """Makes the best that the walk remembers the current state, if there is one."""
    back_to_best(desk.problem, desk.work, desk.state, desk.walk)
