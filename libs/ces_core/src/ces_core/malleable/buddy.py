"""Buddy placement: sizes that are powers of two never fragment nodes that are powers of two.

The larger jobs come first, each at the first place that is a multiple of its size; so whatever fits by number fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Name = TypeVar("Name")


def place(sizes: Mapping[str, int], capacity: int) -> dict[str, int]:
    """Where each job begins, as the number of its first GPU; its others follow. GPUs are numbered node by node, so a
    job of at most a node's size is within one node, and a larger one has whole nodes.

    Raises ValueError for a size that is no power of two, or if all of them are more than ``capacity``.
    """
    begin, begins = 0, {}
    for name, size in in_order(sizes.items()):
        if size & (size - 1):
            raise ValueError(f"{name} has {size} GPUs, which is no power of two")
        begins[name] = begin
        begin += size
    if begin > capacity:
        raise ValueError(f"{begin} GPUs asked for, {capacity} there")
    return begins


def in_order(sizes: Iterable[tuple[Name, int]]) -> list[tuple[Name, int]]:
    """The jobs that have GPUs, the larger first; equal ones stay in their order."""
    return sorted(((name, size) for name, size in sizes if size), key=lambda each: -each[1])


def keep_places(sizes: Mapping[str, int], before: Mapping[str, int], capacity: int) -> dict[str, int]:
    """As :func:`place`, but who has the same size and its place free of others stays: ``before`` has the begins of
    those whose size is unchanged. Where the others do not fit around them, all are placed again."""
    taken = bytearray(capacity)
    begins: dict[str, int] = {}
    for name, size in in_order(sizes.items()):
        begin = before.get(name, -1)
        if 0 <= begin <= capacity - size and begin % size == 0 and not any(taken[begin : begin + size]):
            begins[name] = begin
            taken[begin : begin + size] = b"\1" * size
    for name, size in in_order(sizes.items()):
        if name in begins:
            continue
        fits = (i for i in range(0, capacity - size + 1, size) if not any(taken[i : i + size]))
        begin = next(fits, -1)
        if begin < 0:
            return place(sizes, capacity)
        begins[name] = begin
        taken[begin : begin + size] = b"\1" * size
    return begins
