"""Mixed-integer programmes by HiGHS: maximise a gain over whole numbers, each row of which has an end."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import highspy
import numpy as np

from ces_core.gpus.clusters import Floats
from ces_core.gpus.model import Integers


@dataclass
class Programme:
    """``gain``: of each variable, shape (variables,), which is between 0 and ``upper``."""

    gain: Floats
    upper: Floats
    _rows: dict[Hashable, dict[int, float]] = field(default_factory=dict)
    _ends: dict[Hashable, float] = field(default_factory=dict)

    def count(self, row: Hashable, end: float, variable: int, amount: float) -> None:
        """The sum of a row's amounts is ``end`` at most."""
        self._rows.setdefault(row, {})[variable] = amount
        self._ends[row] = end

    def solve(self, limit_s: float) -> tuple[Integers | None, float]:
        """The best values found within ``limit_s``, if any, and what no others can gain more than."""
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.gain), len(self._rows)
        model.col_cost_, model.col_lower_, model.col_upper_ = -self.gain, np.zeros(len(self.gain)), self.upper
        model.row_lower_ = np.full(len(self._rows), -highspy.kHighsInf)
        model.row_upper_ = np.array([self._ends[row] for row in self._rows])
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(self.gain)
        entries = list(self._rows.values())
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.cumsum([0, *(len(row) for row in entries)])
        model.a_matrix_.index_ = np.array([variable for row in entries for variable in row], np.int32)
        model.a_matrix_.value_ = np.array([amount for row in entries for amount in row.values()], np.float64)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (("output_flag", False), ("threads", 1), ("time_limit", limit_s), ("mip_rel_gap", 0.0)):
            solver.setOptionValue(option, value)
        solver.passModel(model)
        solver.run()
        info = solver.getInfo()
        values = None
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            values = np.round(np.array(solver.getSolution().col_value)).astype(np.int64)
        return values, -info.mip_dual_bound
