"""HiGHS for the small linear programs of rates: one solver a thread, and what it answers."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import highspy
import numpy as np

from ces_core.model.problem import FloatArray

_own = threading.local()


@dataclass(frozen=True, eq=False)
class Optimum:
    """The value of each column, shape (columns,), and of the objective."""

    columns: FloatArray
    objective: float


def thread_solver() -> highspy.Highs:
    """This thread's solver, reused because creating one costs more than a small program."""
    solver: highspy.Highs | None = getattr(_own, "solver", None)
    if solver is None:
        solver = _own.solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", 1e-10),
            ("dual_feasibility_tolerance", 1e-10),
        ):
            solver.setOptionValue(option, value)
    return solver


def optimum(solver: highspy.Highs) -> Optimum | None:
    """Solves the program that ``solver`` holds; None where nothing satisfies it. Raises RuntimeError where it ends in
    another way."""
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"the linear program ended with {solver.modelStatusToString(status)}")
    return Optimum(np.array(solver.getSolution().col_value), float(solver.getObjectiveValue()))
