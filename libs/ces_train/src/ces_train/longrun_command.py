"""``ces train value``. Needs no torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table


def value(
    out: Annotated[Path, typer.Option(help="the file to write; there must be none yet")] = Path("value.json"),
    generations: Annotated[int | None, typer.Option(min=1, help="length of the run", show_default="30")] = None,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same value")] = 1,
) -> None:
    """Learn what the room that a decision leaves behind is worth in the long run, for the solver search-longrun."""
    from ces_train.longrun import Settings, train

    if out.exists():
        typer.echo(f"error: {out} is there already", err=True)
        raise typer.Exit(2)
    settings = Settings() if generations is None else replace(Settings(), generations=generations)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("generations", total=settings.generations)
        card = train(settings, seed, out, lambda done, *_: progress.update(bar, completed=done))
    table = Table("regime", "search", "accepted", "satisfaction", "load imbalance")
    for name, scores in card["scores"].items():
        for regime, found in scores.items():
            table.add_row(regime, name, *(f"{found[what]:.4f}" for what in settings.earns))
    Console().print(table)
    typer.echo(f"{card['runs']} runs of {settings.jobs} jobs in {card['seconds']} s, written to {out}")
