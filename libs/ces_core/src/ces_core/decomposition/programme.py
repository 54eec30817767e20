"""Programmes over variables that are 0 or 1, by HiGHS: rows with an end each, and the most that can be gained."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from ces_core.decomposition.graph import Floats

TOLERANCE = 1e-6
"""By which HiGHS lets a row pass its end, and a sum of gains be off: with rows and gains of about 1."""


@dataclass(frozen=True)
class Solution:
    """``values``: of each variable, None where none were found in time; ``most``: no others gain more, infinite where
    that is not known; ``impossible``: HiGHS says that no values keep to all rows."""

    values: NDArray[np.bool_] | None
    most: float
    impossible: bool


class Programme:
    """``gain``: of each variable that is 1."""

    def __init__(self, gain: Floats) -> None:
        self.gain = gain
        self._starts = array("i", [0])
        self._columns = array("i")
        self._amounts = array("d")
        self._ends = array("d")

    def row(self, columns: Sequence[int], amounts: Sequence[float], end: float) -> None:
        """The sum of the amounts of those variables that are 1 is ``end`` at most."""
        self._columns.extend(columns)
        self._amounts.extend(amounts)
        self._starts.append(len(self._columns))
        self._ends.append(end)

    def solve(self, limit_s: float, *, presolve: bool = True) -> Solution:
        """The best values that are found in so many seconds. ``presolve``: HiGHS makes the programme smaller first,
        which is quicker and where it has gone wrong."""
        size = len(self.gain)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = size, len(self._ends)
        model.col_cost_, model.col_lower_, model.col_upper_ = -self.gain, np.zeros(size), np.ones(size)
        model.row_lower_ = np.full(len(self._ends), -highspy.kHighsInf)
        model.row_upper_ = np.array(self._ends)
        model.integrality_ = [highspy.HighsVarType.kInteger] * size
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(self._starts, np.int32)
        model.a_matrix_.index_ = np.array(self._columns, np.int32)
        model.a_matrix_.value_ = np.array(self._amounts)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        options = {"output_flag": False, "threads": 1, "time_limit": max(limit_s, 0.0), "mip_rel_gap": 0.0}
        for option, value in (options | {"presolve": "choose" if presolve else "off"}).items():
            solver.setOptionValue(option, value)
        solver.passModel(model)
        solver.run()
        info = solver.getInfo()
        values = None
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            values = np.array(solver.getSolution().col_value) > 0.5
        impossible = solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
        most = float(-info.mip_dual_bound)
        return Solution(values, np.inf if impossible or not np.isfinite(most) else most, impossible)
