"""Names and values, one pair a line."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text


def fact_grid(facts: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(name), Text(value))
    return grid
