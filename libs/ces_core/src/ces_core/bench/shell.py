"""What every ``ces bench`` command does around its measurement: progress, errors, tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ces_core.bench.drawing import PlotsUnavailableError, require_plots
from ces_core.bench.results import Grid
from ces_core.simulator.deciding import BadDecisionError

PIPE_WIDTH = 200
"""Columns where no terminal says how many there are."""


@contextmanager
def measuring(out: Path, plots: bool) -> Iterator[Progress]:
    """Progress bars for a measurement whose results go to ``out``; what goes wrong ends it, named."""
    if plots:
        try:
            require_plots()
        except PlotsUnavailableError as error:
            raise typer.BadParameter(str(error), param_hint="--plots") from error
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot be written: {error}", param_hint="--out") from error
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        try:
            yield progress
        except BadDecisionError as error:
            file = out / "broken.json"
            file.write_text(json.dumps({"instance": error.instance, "answer": error.answer}, indent=1) + "\n")
            fail(f"{error}; instance and answer are in {file}")


def fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(1)


def show(tables: Sequence[Grid], out: Path, files: Sequence[str]) -> None:
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, emoji=False, highlight=False, width=PIPE_WIDTH)
    for table in tables:
        console.print(table.on_screen())
    console.print(f"written to {out}: {', '.join(files)}", soft_wrap=True)
