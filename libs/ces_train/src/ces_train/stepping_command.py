"""``ces train steps``. Needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def steps(
    games: Annotated[int, typer.Option(min=1, max=100_000, help="jobs at once, in each thread")] = 1024,
    rounds: Annotated[int, typer.Option(min=1, help="how often each is measured")] = 5,
    threads: Annotated[int, typer.Option(min=1, max=256, help="at most; one is measured, too")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="of the first round; the next has the next")] = 1,
    out: Annotated[Path, typer.Option(help="where results and table go")] = Path("bench-results/steps"),
) -> None:
    """How many decisions per second the environments of training take."""
    from ces_core.bench.machine import CoreTime, describe
    from ces_core.bench.results import write_results, write_tables
    from ces_core.bench.shell import measuring, show
    from ces_train.stepping import ENVIRONMENTS, grid, measure

    question = {"games": games, "rounds": rounds, "threads": threads, "seed": seed}
    with measuring(out, plots=False) as progress:
        machine, before = describe(), CoreTime.now()
        bar = progress.add_task("rounds", total=len(ENVIRONMENTS) * rounds * len({1, threads}))
        found = measure(games, rounds, threads, seed, lambda: progress.advance(bar))
        machine["stolen"] = CoreTime.now().stolen_since(before)
        tables = [grid(question, found)]
        write_results(out, {"benchmark": "steps", "question": question, "machine": machine, "steps": found})
        write_tables(out, machine, tables)
    show(tables, out, ["results.json", "tables.md"])
