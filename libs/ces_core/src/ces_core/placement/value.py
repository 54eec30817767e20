"""Learned value of residual capacity: its parameters, how they are read, and how they enter compiled code.

The value of a cluster is the sum over nodes of ``P(free CPU) * P(free memory)``, in units of the mean capacity of its
nodes, plus the sum over links and media of ``H(free bandwidth)``, in units of the mean maximum of the job's flows, so
that narrow links differ from wide ones. P and H start at zero and rise piecewise linearly from tick to tick.
``balance`` scales the load imbalance of the composite and is learned as well: it is what balance is worth in the long
run. A decision then maximises ``0.5 * (1 - balance * L) + 0.5 * D`` plus the change in value.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.model.errors import ValueFileError
from ces_core.model.problem import FloatArray, Problem
from ces_core.placement.view import ProblemView

SCHEMA = 1
"""Raised when the ticks, units or meaning of the numbers change."""
NODE_TICKS = (0.15, 0.3, 0.45, 0.6, 0.8, 1.1)
"""Breakpoints of P, as shares of the mean capacity."""
LINK_TICKS = (1.0, 2.0, 4.0)
"""Breakpoints of H, as multiples of a flow's maximum."""
GRID = 20
"""Table points per unit; every tick lies on one."""
LARGEST = 1 << 16
"""Maximum file size in bytes; about two thousand are needed."""
SHIPPED = Path(__file__).with_name("value.json")
"""The value shipped with the core."""


@dataclass(frozen=True)
class Value:
    """Parameters of the value: ``node`` and ``link`` hold the non-negative rises of P and H between ticks. ``card``:
    how they were learned."""

    node: tuple[float, ...]
    link: tuple[float, ...]
    balance: float
    version: str = "unnamed"
    card: dict[str, Any] | None = None

    def on(self, problem: Problem, view: ProblemView) -> ProblemView:
        """The view of a problem with a value on residual capacity."""
        nodes, links = _table(NODE_TICKS, self.node), _table(LINK_TICKS, self.link)
        flow = float(problem.flow_max.mean()) if len(problem.flow_max) else 0.0
        units = [_mean(capacity) for capacity in problem.cluster.node_capacity[:2]] + [flow]
        head = [len(nodes), len(links), *(GRID / unit if unit > 0 else 0.0 for unit in units)]
        return view._replace(weights=view.weights * self.balance, worth=np.concatenate([head, nodes, links]))

    def to_dict(self) -> dict[str, Any]:
        """The content of a value file."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "node": list(self.node),
            "link": list(self.link),
            "balance": self.balance,
            "card": self.card or {},
        }


def load_value(path: Path) -> Value:
    """Reads the value in ``path``. Raises ValueFileError, naming the fault."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueFileError(f"{path}: is {path.stat().st_size} bytes, a value has at most {LARGEST}")
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueFileError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueFileError(f"{path}: is no JSON file, or not a whole one: {error}") from error
    if not isinstance(told, dict) or "schema" not in told:
        raise ValueFileError(f"{path}: is no value of CES")
    if told["schema"] != SCHEMA:
        raise ValueFileError(f"{path}: has schema {told['schema']}, this version reads {SCHEMA}; train it again")
    card = told.get("card")
    return Value(
        node=_rises(path, told, "node", len(NODE_TICKS)),
        link=_rises(path, told, "link", len(LINK_TICKS)),
        balance=_rises(path, {"balance": [told.get("balance")]}, "balance", 1)[0],
        version=str(told.get("version", "unknown")),
        card=card if isinstance(card, dict) else {},
    )


@cache
def shipped() -> Value:
    """The value shipped with the core. Raises ValueFileError."""
    return load_value(SHIPPED)


def _rises(path: Path, told: dict[str, Any], name: str, count: int) -> tuple[float, ...]:
    found = told.get(name)
    if not isinstance(found, list) or len(found) != count or not all(_is_amount(each) for each in found):
        raise ValueFileError(f"{path}: {name} must be {count} finite numbers from 0 on, not {found!r}")
    return tuple(float(each) for each in found)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _table(ticks: tuple[float, ...], rises: tuple[float, ...]) -> FloatArray:
    """Values at every grid point from 0 to the last tick."""
    points = np.arange(round(ticks[-1] * GRID) + 1) / GRID
    table: FloatArray = np.interp(points, (0.0, *ticks), np.cumsum((0.0, *rises)))
    return table


def _mean(capacity: FloatArray) -> float:
    there = capacity[capacity > 0]
    return float(there.mean()) if len(there) else 0.0
