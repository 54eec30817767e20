"""Checks of single numbers and names, with errors that name the field and what would be right."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from ces_core.model.errors import ProblemError

SMALLEST, LARGEST = 1e-12, 1e18
"""Amounts other than zero lie between these, so that no ratio or square of them overflows or loses its meaning."""


def amount(field: str, value: float) -> float:
    """The value as a finite number from 0 on, 0 or within ``SMALLEST..LARGEST``. Raises ProblemError."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ProblemError(field, f"must be a number, not {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ProblemError(field, f"must be finite, not {number}")
    if number < 0:
        raise ProblemError(field, f"must not be negative, is {value}")
    if number and not SMALLEST <= number <= LARGEST:
        raise ProblemError(field, f"must be 0 or within {SMALLEST:g}..{LARGEST:g}, is {value}")
    return number


def positive(field: str, value: float) -> float:
    """As :func:`amount`, and above 0."""
    number = amount(field, value)
    if number == 0:
        raise ProblemError(field, "must be above 0")
    return number


def probability(field: str, value: float) -> float:
    """As :func:`amount`, and at most 1."""
    number = amount(field, value)
    if number > 1:
        raise ProblemError(field, f"must be at most 1, is {value}")
    return number


def known(field: str, what: str, name: str, names: Collection[str]) -> None:
    """Raises ProblemError where there is no ``what`` of this name."""
    if name not in names:
        raise ProblemError(field, f"no {what} is called {name!r}")
