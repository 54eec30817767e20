"""``ces bench longrun``: solvers side by side over time, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ces_core.bench import asking
from ces_core.bench.commands import LimitOption, PlotsOption, RegimesOption, SeedOption
from ces_core.bench.shell import measuring, show
from ces_core.generate import REGIMES

RIVALS = ("search", "search-longrun")


def longrun(
    regime: RegimesOption = ",".join(REGIMES),
    loads: Annotated[
        str, typer.Option(help="CPU or memory asked for over time, by what is free; separated by commas")
    ] = "0.7,0.9,1.1",
    nodes: Annotated[int, typer.Option(min=1, max=10_000, help="nodes of a random network")] = 20,
    jobs: Annotated[int, typer.Option(min=10, max=100_000, help="jobs that arrive")] = 200,
    repeats: Annotated[int, typer.Option(min=2, help="clusters and sequences of jobs")] = 12,
    seed: SeedOption = 42,
    solvers: Annotated[
        str | None,
        typer.Option(help="those compared, separated by commas; all with the first", show_default=" and ".join(RIVALS)),
    ] = None,
    time_limit: LimitOption = 0,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/longrun"),
) -> None:
    """What a learned value of the room left behind is worth over time: differences on the same jobs and clusters."""
    from ces_core.bench.longrun import Comparison, compare
    from ces_core.bench.longrun_plots import draw
    from ces_core.bench.longrun_report import grids
    from ces_core.bench.machine import describe
    from ces_core.bench.online import Question
    from ces_core.bench.results import write_results, write_tables

    regimes = asking.names("--regime", regime, REGIMES)
    question = Question(
        loads=asking.amounts("--loads", loads, least=1),
        regime=regimes[0],
        nodes=nodes,
        topology="random",
        jobs=jobs,
        tasks=tuple(range(3, 9)),
        duration_s=600.0,
        patience_s=600.0,
        policy="fcfs-backfill",
        repeats=repeats,
        seed=seed,
        solvers=asking.solvers_or("--solvers", solvers, RIVALS),
        time_limit_s=time_limit or None,
    )
    if len(question.solvers) < 2:
        raise typer.BadParameter("a comparison takes two", param_hint="--solvers")
    comparison = Comparison(question, regimes)
    with measuring(out, plots) as progress:
        machine = describe()
        bar = progress.add_task("simulations", total=comparison.simulations)
        results = {"benchmark": "longrun", "machine": machine} | compare(comparison, lambda: progress.advance(bar))
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        pictures = draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", *pictures])
