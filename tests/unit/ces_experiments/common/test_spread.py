"""Figures of a table: what one value has not is not shown."""

from __future__ import annotations

from ces_experiments.common.spread import Spread, plus_minus, spread


def told(*values: float) -> Spread:
    return spread(list(values))


def test_one_value_has_no_spread() -> None:
    assert plus_minus(told(1.0, 3.0), 1) == "2.0 ± 1.4"
    assert plus_minus(told(57.0), 0) == "57"
    assert plus_minus(told()) == "-"
