"""The one road from what was measured to its page: results, tables, raw data and pictures in a folder, tables on the
screen."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ces_experiments.common.results import Grid, write_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PIPE_WIDTH = 200
"""Columns where no terminal says how many there are."""
DPI = 150

Results = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """What a measurement found. ``machine``: what it knows of how it was measured. ``raw``: file -> rows of a CSV file.
    ``failure``: why all of it is bad news, if it is."""

    results: Results
    machine: Results = field(default_factory=dict)
    raw: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    failure: str | None = None


@dataclass(frozen=True)
class Report:
    """How results are told: their tables, and their pictures, if any, by the name of the file."""

    tables: Callable[[Any], list[Grid]]
    pictures: Callable[[Any], Mapping[str, Figure]] | None = None

    def write(self, results: Results, found: Found, out: Path, *, plots: bool) -> list[str]:
        """Writes under ``out`` what is told of the results, which lie there; gives the names of all files."""
        write_tables(out, results["machine"], self.tables(results))
        for name, rows in found.raw.items():
            write_rows(out / name, rows)
        drawn = self.draw(results, out) if plots else []
        return ["results.json", "tables.md", *found.raw, *drawn]

    def draw(self, results: Results, out: Path) -> list[str]:
        """Draws each picture under ``out``, as PNG for pages and as PDF for papers; gives the names of all files."""
        drawn = self.pictures(results) if self.pictures else {}
        files = []
        for name, figure in drawn.items():
            for file in (name, str(Path(name).with_suffix(".pdf"))):
                figure.savefig(out / file, dpi=DPI)
                files.append(file)
        return files

    def show(self, results: Results, out: Path, files: Iterable[str]) -> None:
        console = Console(markup=False, emoji=False, highlight=False)
        if not console.is_terminal:
            console.width = PIPE_WIDTH
        for table in self.tables(results):
            console.print(table.on_screen())
        console.print(f"written to {out}: {', '.join(files)}", soft_wrap=True)


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """A CSV file with a heading."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
