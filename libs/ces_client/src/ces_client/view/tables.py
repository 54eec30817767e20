"""The look of everything in columns: tables that fit a narrow terminal, and names beside their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, cast

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from ces_client.view.plain import plain, plain_text

GAP = 2  # spaces between columns
UNBOUNDED = 10_000
LEAST = 16  # characters that a wrapped column is left with


class PlainTable(Table):
    """Cells are taken as they are: what looks like markup in a user's text is text. Where the terminal is too narrow,
    optional columns are left out; ids and names are never broken over lines."""

    optional: tuple[str, ...] = ()

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*map(_cell, cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting, width = self._fitting(console, options)
        if width <= options.max_width:
            yield from super(PlainTable, fitting).__rich_console__(console, options)
            return
        # Wider than the terminal, which will wrap the lines: drop the spaces that pad each of them.
        rendered = super(PlainTable, fitting).__rich_console__(console, options.update(width=width))
        for line in Segment.split_lines(cast(Iterable[Segment], rendered)):
            yield from _stripped(line)
            yield Segment.line()

    def _fitting(self, console: Console, options: ConsoleOptions) -> tuple[PlainTable, int]:
        """The table without the optional columns that do not fit, and the width that it then needs."""
        unbounded = options.update(width=UNBOUNDED)
        kept = [replace(column, min_width=_least_width(column, console, unbounded)) for column in self.columns]
        left_out = list(self.optional)

        def needed() -> int:
            return sum(column.min_width or 0 for column in kept) + GAP * (len(kept) - 1)

        while left_out and needed() > options.max_width:
            name = left_out.pop(0)
            kept = [column for column in kept if column.header != name]
        fitting = copy(self)
        fitting.columns = [replace(column, _index=index) for index, column in enumerate(kept)]
        return fitting, needed()


def plain_table(
    *columns: str, right: Sequence[str] = (), wrapped: Sequence[str] | None = None, optional: Sequence[str] = ()
) -> PlainTable:
    """An empty table. Columns in ``right`` hold numbers; text is wrapped only in ``wrapped`` (the last column if None);
    those in ``optional`` are left out on a narrow terminal, in this order."""
    table = PlainTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    table.optional = tuple(optional)
    wrapped = columns[-1:] if wrapped is None else wrapped
    for column in columns:
        table.add_column(
            column, justify="right" if column in right else "left", overflow="fold", no_wrap=column not in wrapped
        )
    return table


def _cell(cell: RenderableType | None) -> RenderableType | None:
    """As it will be shown, so that its column is as wide as that."""
    if isinstance(cell, str):
        return Text(plain(cell))
    return plain_text(cell) if isinstance(cell, Text) else cell


class FactList(Group):
    """Names and values, a pair a line; values stay whole, so that they can be copied."""

    def __init__(self, facts: Sequence[tuple[str, str]]) -> None:
        self.facts = facts
        width = max(len(name) for name, _ in facts) + GAP
        super().__init__(*(Text.assemble((name.ljust(width), "bold"), plain(value)) for name, value in facts))


def fact_list(facts: Sequence[tuple[str, str]]) -> RenderableType:
    """Some, at least one."""
    return FactList(facts)


def _least_width(column: Column, console: Console, unbounded: ConsoleOptions) -> int:
    """The width of a column's text, or of its longest word where it may be wrapped, or least where it may be cut."""
    cells = [Text(str(column.header)), *column.cells]
    widest = max(Measurement.get(console, unbounded, cell).maximum for cell in cells)
    if column.no_wrap:
        return widest
    words = (
        Measurement.get(console, unbounded, cell).minimum
        for cell in cells
        if isinstance(cell, Text) and not cell.no_wrap
    )
    return max(min(widest, LEAST), *words)


def _stripped(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip():
        line.pop()
    return [*line[:-1], line[-1]._replace(text=line[-1].text.rstrip())] if line else line
