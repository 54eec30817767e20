"""Pairs of figures from runs in turn, and what they say. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

NOTABLE = 1.1  # a ratio that is further from 1 in every pair is no chance

Pair = tuple[float | None, float | None]  # of the former commit, of this tree; None: not measured


def row(name: str, pairs: Sequence[Pair], more: bool) -> tuple[str, ...]:
    """A figure's row: medians of both sides, the median ratio of the pairs with the least and the greatest, and a word
    where all pairs agree that it changed. ``more``: whether more is better."""
    sides = [[side for side in each if side is not None] for each in zip(*pairs, strict=True)]
    medians = (f"{statistics.median(side):.4g}" if side else "-" for side in sides)
    ratios = [now / before for before, now in pairs if before and now is not None]
    if not ratios:
        return (name, *medians, "-", "-", "")
    span = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return (name, *medians, f"{statistics.median(ratios):.2f}", span, _verdict(ratios, more))


def _verdict(ratios: Sequence[float], more: bool) -> str:
    if len(ratios) < 2:
        return ""
    if min(ratios) > NOTABLE:
        return "better" if more else "worse"
    if max(ratios) < 1 / NOTABLE:
        return "worse" if more else "better"
    return ""
