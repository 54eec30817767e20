"""Choosing among jobs of fixed size: who comes first in some order, and fits, runs."""

from __future__ import annotations

from collections.abc import Iterable

from ces_core.malleable.model import Running


def fixed_size(each: Running, capacity: int) -> int:
    """The size asked for, or the largest measured one below it that the cluster holds."""
    return each.job.speeds.fitting(min(each.job.asked, capacity))


def fit_in_order(ordered: Iterable[Running], capacity: int) -> dict[str, int]:
    """Sizes by name of those that fit at their fixed sizes, in this order; who does not fit holds up nobody."""
    sizes, free = {}, capacity
    for each in ordered:
        size = fixed_size(each, capacity)
        if 0 < size <= free:
            sizes[each.name] = size
            free -= size
    return sizes
