"""Integer programmes whose rows have names, and are filled one variable at a time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ces_core.integer_programme import Floats, Programme, Solution


@dataclass
class NamedRows:
    """``gain``: of each variable, shape (variables,), which is between 0 and ``upper``."""

    gain: Floats
    upper: Floats
    _rows: dict[Hashable, dict[int, float]] = field(default_factory=dict)
    _ends: dict[Hashable, float] = field(default_factory=dict)

    def count(self, row: Hashable, end: float, variable: int, amount: float) -> None:
        """The sum of a row's amounts is ``end`` at most."""
        self._rows.setdefault(row, {})[variable] = amount
        self._ends[row] = end

    def solve(self, limit_s: float) -> Solution:
        """The best values found within ``limit_s`` seconds."""
        programme = Programme(self.gain, self.upper)
        for row, amounts in self._rows.items():
            programme.row(list(amounts), list(amounts.values()), self._ends[row])
        return programme.solve(limit_s)
