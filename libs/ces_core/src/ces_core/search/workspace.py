"""Entry points from Python into the compiled search, which receive all their arrays as one workspace.

A compiled call unpacks every tuple of arrays it receives, which for a search costs as much as examining several
placements. A workspace is unpacked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ces_core.compiled.jit import COMPILED, compiled
from ces_core.placement.fill import FillWork, fill_work
from ces_core.placement.state import State, new_state
from ces_core.placement.task_order import task_order
from ces_core.placement.trial import install
from ces_core.placement.view import ProblemView
from ces_core.search.annealing import SearchMemory, anneal, back_to_best, new_search_memory
from ces_core.search.neighbourhoods import improve
from ces_core.search.tree import PruningWeights, Tree, new_tree, recreate

if TYPE_CHECKING or not COMPILED:

    class Workspace(NamedTuple):
        """One problem, the state of its search, and its scratch space."""

        problem: ProblemView
        work: FillWork
        state: State
        walk: SearchMemory
        tree: Tree

else:
    from numba.core import types
    from numba.experimental import structref

    @structref.register
    class WorkspaceType(types.StructRef):
        """numba's type of a workspace."""

        def preprocess_fields(self, fields: Any) -> Any:
            return tuple((name, types.unliteral(kind)) for name, kind in fields)

    class Workspace(structref.StructRefProxy):
        """One problem, the state of its search, and its scratch space."""

    structref.define_proxy(Workspace, WorkspaceType, ["problem", "work", "state", "walk", "tree"])


@compiled
def workspace_for(problem: ProblemView, random: int) -> tuple[FillWork, State, SearchMemory, Tree, Workspace]:
    """All that a search of the problem needs: the arrays for Python, and a workspace of the same arrays. ``random``:
    initial state of its generator."""
    work, state, walk, tree = (
        fill_work(problem),
        new_state(problem),
        new_search_memory(problem, random),
        new_tree(problem),
    )
    return work, state, walk, tree, Workspace(problem, work, state, walk, tree)


@compiled
def worst_fit_start(workspace: Workspace) -> None:
    """Puts each task on the allowed node with most CPU free, ignoring conflicts, as a state to start from. Raises
    ValueError if there is no node at all."""
    view = workspace.problem
    if not view.fits.shape[1]:
        raise ValueError("there is no candidate")
    placement = np.zeros(len(view.fits), dtype=np.int64)
    for t in range(len(placement)):
        largest = -1.0
        for n in range(view.fits.shape[1]):
            if view.fits[t, n] and view.free[0, n] > largest:
                largest = view.free[0, n]
                placement[t] = n
    install(view, workspace.work, workspace.state, placement)


@compiled
def reset_tree(workspace: Workspace) -> None:
    """Makes :func:`search_tree` start over, with tasks in their preferred placement order."""
    workspace.tree.order[:] = task_order(workspace.problem)
    workspace.tree.level[0] = -1


@compiled
def search_tree(workspace: Workspace, pruning: PruningWeights, count: int, limit: int, breadth: int) -> int:
    """:func:`~ces_core.search.tree.recreate` applied to the first ``count`` tasks in the tree's order."""
    return recreate(workspace.problem, workspace.work, workspace.state, workspace.tree, pruning, count, limit, breadth)


@compiled
def run_annealing(workspace: Workspace, steps: int, hot: float, cold: float, first: int, last: int) -> int:
    """:func:`~ces_core.search.annealing.anneal`."""
    return anneal(workspace.problem, workspace.work, workspace.state, workspace.walk, steps, hot, cold, first, last)


@compiled
def improve_neighbourhoods(
    workspace: Workspace, pruning: PruningWeights, size: int, limit: int, breadth: int, patience: int, budget: int
) -> int:
    """:func:`~ces_core.search.neighbourhoods.improve`."""
    view, work, state, walk, tree = workspace.problem, workspace.work, workspace.state, workspace.walk, workspace.tree
    return improve(view, work, state, walk, tree, pruning, size, limit, breadth, patience, budget)


@compiled
def return_to_best(workspace: Workspace) -> None:
    """Restores the best placement in ``walk`` as the current state, if there is one."""
    back_to_best(workspace.problem, workspace.state, workspace.walk)
