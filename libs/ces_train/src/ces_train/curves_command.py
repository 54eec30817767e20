"""``ces train curves``. Nothing here needs torch until it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ces_core.bench.commands import PlotsOption


def curves(
    updates: Annotated[int, typer.Option(min=1, help="length of each run")] = 200,
    runs: Annotated[int, typer.Option(min=1, help="runs with, and as many without the heuristic reward")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="of the first run; the next has the next")] = 1,
    every: Annotated[int, typer.Option(min=1, help="updates from one evaluation to the next")] = 20,
    validation: Annotated[int, typer.Option(min=1, help="instances of each regime to evaluate on")] = 100,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/curves"),
) -> None:
    """Learning curves of the thesis's scheduler with and without its heuristic reward (figure 4-5)."""
    from ces_core.bench.machine import describe
    from ces_core.bench.results import write_results, write_tables
    from ces_core.bench.shell import measuring, show
    from ces_train.curves_plots import draw
    from ces_train.curves_report import grids
    from ces_train.needs import require_torch

    require_torch()
    from ces_train.curves import Question, compare

    question = Question(updates, runs, seed, every, validation)
    with measuring(out, plots) as progress:
        machine = describe()
        bar = progress.add_task("updates", total=question.all_updates)
        results = {"benchmark": "curves", "machine": machine} | compare(question, lambda: progress.advance(bar))
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        pictures = draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", *pictures])
