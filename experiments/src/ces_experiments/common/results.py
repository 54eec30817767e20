"""Where results go: ``results.json``, and tables for the screen and for pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from ces_experiments.common.machine import in_words
from ces_experiments.common.spread import Cell


@dataclass(frozen=True)
class Grid:
    """A table before it has a form. The first column names, the others hold figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @staticmethod
    def of(title: str, first: str, columns: Mapping[str, Cell], rows: Iterable[tuple[str, Any]]) -> Grid:
        """``columns``: heading -> what it says of what was found; ``rows``: names with what was found."""
        said = [[name, *(cell(found) for cell in columns.values())] for name, found in rows]
        return Grid(title, (first, *columns), said)

    def with_row(self, row: Sequence[str]) -> Grid:
        """One more at the end."""
        return replace(self, rows=[*self.rows, row])

    def on_screen(self) -> Table:
        table = Table(title=self.title, title_justify="left")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left", no_wrap=not i)
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self) -> str:
        rows = [self.columns, ["---", *["---:"] * (len(self.columns) - 1)], *self.rows]
        return "\n".join([self.title, "", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def write_results(out: Path, results: Mapping[str, Any]) -> None:
    """Write ``results.json`` under ``out``, which is made where absent. Figures keep six digits, each spread a line."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(_dump(_rounded(results), "") + "\n", encoding="utf-8")


def write_tables(out: Path, machine: Mapping[str, Any], grids: Sequence[Grid]) -> None:
    """Write ``tables.md`` under ``out``: the tables, and how they came to be."""
    parts = [*(grid.as_markdown() for grid in grids), provenance(machine)]
    (out / "tables.md").write_text("\n".join(parts) + "\n", encoding="utf-8")


def provenance(machine: Mapping[str, Any]) -> str:
    """One sentence: which command made the figures, and where."""
    head, plus, changes = (machine["commit"] or "unknown").partition("+")
    commit = f"commit `{head[:12]}{plus}{changes}`"
    made = f"Made by `{machine['command']}` at {commit} on {in_words(machine)}, load average {machine['load_average']}"
    waited = f"; decisions took {ratio:.2f} times their CPU time" if (ratio := machine.get("wall_over_cpu")) else ""
    stolen = f"; others of the hypervisor had {share:.1%} of the cores" if (share := machine.get("stolen")) else ""
    return f"{made}{waited}{stolen}."


def _dump(value: Any, margin: str) -> str:
    """JSON with objects that hold no others on one line."""
    if not isinstance(value, dict) or not any(isinstance(each, dict | list) for each in value.values()):
        return json.dumps(value, allow_nan=False)
    inner = margin + " "
    lines = (f"{inner}{json.dumps(key)}: {_dump(each, inner)}" for key, each in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
