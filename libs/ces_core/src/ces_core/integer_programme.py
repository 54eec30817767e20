"""Integer programmes by HiGHS: maximise a gain over whole numbers, under rows with an end each."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-6
"""By which HiGHS lets a row pass its end, and a sum of gains be off: with rows and gains of about 1."""


@dataclass(frozen=True)
class Solution:
    """``values``: of each variable, None where none were found in time; ``most``: no others gain more, infinite where
    that is not known; ``impossible``: HiGHS says that no values keep to all rows."""

    values: Integers | None
    most: float
    impossible: bool


class Programme:
    """``gain``: of a unit of each variable, shape (variables,). ``upper``: the most of each, 1 if None; 0 is the
    least."""

    def __init__(self, gain: Floats, upper: Floats | None = None) -> None:
        self.gain = gain
        self.upper = np.ones(len(gain)) if upper is None else upper
        self._starts = array("i", [0])
        self._columns = array("i")
        self._amounts = array("d")
        self._ends = array("d")

    def row(self, columns: Sequence[int], amounts: Sequence[float], end: float) -> None:
        """The sum of the variables, each times its amount, is ``end`` at most."""
        self._columns.extend(columns)
        self._amounts.extend(amounts)
        self._starts.append(len(self._columns))
        self._ends.append(end)

    def solve(self, limit_s: float, *, presolve: bool = True) -> Solution:
        """The best values that are found within ``limit_s`` seconds. ``presolve``: HiGHS makes the programme smaller
        first, which is quicker; what went wrong in HiGHS so far went wrong there."""
        size = len(self.gain)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = size, len(self._ends)
        model.col_cost_, model.col_lower_, model.col_upper_ = -self.gain, np.zeros(size), self.upper
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
            values = np.round(np.array(solver.getSolution().col_value)).astype(np.int64)
        impossible = solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
        most = float(-info.mip_dual_bound)
        return Solution(values, np.inf if impossible or not np.isfinite(most) else most, impossible)
