"""The scheduler's solver with the policy of a version."""

from __future__ import annotations

from ces_core.evolution.folder import EvolutionFolder, FolderError
from ces_core.evolution.state import State
from ces_core.registry import get_solver
from ces_core.solver import Learned


def solver_of(folder: EvolutionFolder, state: State, version: str) -> Learned:
    """Raises FolderError, UnknownSolverError and PolicyError."""
    if state.basis is None:
        raise FolderError(f"{folder.path}: no scheduler has begun with this folder yet: set CES_EVOLUTION to it")
    solver = get_solver(state.basis.solver)
    if not isinstance(solver, Learned):
        raise FolderError(f"the solver {solver.name} asks no policy that could evolve: set CES_SOLVER to another")
    return solver.using(folder.policy(version))
