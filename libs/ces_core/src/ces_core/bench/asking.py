"""What people write behind options: lists, ranges and names, checked."""

from __future__ import annotations

import math
from collections.abc import Collection

import typer

from ces_core.solvers import DEFAULT, available

GROUND_TRUTH = "exact"
"""The solver that proves optima. It is not compared unless asked for: it takes as long as it takes."""


def names(option: str, text: str, known: Collection[str]) -> tuple[str, ...]:
    """Names separated by commas. Raises typer.BadParameter, naming the option."""
    found = _parts(option, text)
    for name in found:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=option)
    return found


def solvers(option: str, text: str | None) -> tuple[str, ...]:
    """The named solvers, or all but the ground truth; each once, under its own name."""
    if text is None:
        return tuple(name for name in sorted(available()) if name not in (DEFAULT, GROUND_TRUTH))
    return names(option, text, sorted(available()))


def whole_numbers(option: str, text: str, least: int, most: int) -> tuple[int, ...]:
    """Numbers and ranges such as ``3-8`` or ``3,5,8``, ascending. Raises typer.BadParameter, naming the option."""
    found: set[int] = set()
    for part in _parts(option, text):
        low, dash, high = part.partition("-")
        try:
            first, last = int(low), int(high) if dash else int(low)
        except ValueError:
            raise typer.BadParameter(f"{part!r} is no number and no range such as 3-8", param_hint=option) from None
        if not least <= first <= last <= most:
            raise typer.BadParameter(f"{part!r} is not within {least}..{most}", param_hint=option)
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def amounts(option: str, text: str) -> tuple[float, ...]:
    """Positive numbers separated by commas, ascending; none for an empty text. Raises typer.BadParameter."""
    found = set()
    for part in _parts(option, text) if text else ():
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise typer.BadParameter(f"{part!r} is no number above 0", param_hint=option)
        found.add(value)
    return tuple(sorted(found))


def _parts(option: str, text: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in parts:
        raise typer.BadParameter("an empty item in the list", param_hint=option)
    return parts
