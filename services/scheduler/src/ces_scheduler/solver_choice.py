"""The solver that decides: the one asked for, with its policy if it is a learned one, or the stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import structlog

from ces_core.model.errors import PolicyError
from ces_core.registry import get_solver
from ces_core.search.solver import SEARCH
from ces_core.solver import Learned, Solver

log = structlog.get_logger()
STAND_IN: Solver = SEARCH
"""Decides where a learned solver's policy cannot be used."""


@dataclass(frozen=True)
class Choice:
    """``fallback``: why the solver is not the one that was asked for; None where it is."""

    solver: Solver
    fallback: str | None = None


def choose(name: str, policy: Path | None) -> Choice:
    """The solver of this name, with the policy in the file ``policy`` (None: its usual one) if it asks one. Raises
    UnknownSolverError; a policy that is refused leaves the deciding to the stand-in."""
    solver = get_solver(name)
    if not isinstance(solver, Learned):
        if policy is not None:
            log.warning("the solver asks no policy: CES_POLICY is left unread", solver=solver.name, file=str(policy))
        return Choice(solver)
    try:
        ready = solver.using(policy)
    except PolicyError as error:
        log.error("the policy is refused", solver=solver.name, deciding=STAND_IN.name, reason=str(error))
        return Choice(STAND_IN, refusal(solver, error))
    if ready.policy is not None:
        log.info("the policy is loaded", solver=solver.name, version=ready.policy.version)
    return Choice(ready)


def refusal(solver: Solver, error: PolicyError) -> str:
    """Why a solver's policy was not followed, in the words that plans keep."""
    return f"{solver.name} could not be used: {error}"
