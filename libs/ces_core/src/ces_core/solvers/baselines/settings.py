"""What the baselines' settings have in common: numbers that make sense, or an error that names the field."""

from __future__ import annotations

import math
from typing import Any


def within(settings: Any, low: float, high: float, *fields: str) -> None:
    """Raises ValueError where one of the fields is no number within ``low..high``."""
    for field in fields:
        value = getattr(settings, field)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"{type(settings).__name__}.{field} must be within {low:g}..{high:g}, not {value!r}")


def weights(settings: Any, *fields: str) -> None:
    """Raises ValueError where one of the fields is no weight, or all of them are zero."""
    for field in fields:
        value = getattr(settings, field)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"{type(settings).__name__}.{field} must be a number from 0 up, not {value!r}")
    if not any(getattr(settings, field) for field in fields):
        raise ValueError(f"{type(settings).__name__}: at least one of {', '.join(fields)} must be above 0")
