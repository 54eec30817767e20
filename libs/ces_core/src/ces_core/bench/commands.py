"""``ces bench placement`` and its like: plain functions, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ces_core.bench import asking
from ces_core.bench.drawing import PlotsUnavailableError, require_plots
from ces_core.bench.results import Grid
from ces_core.generate import REGIMES
from ces_core.simulator.deciding import BrokenPlanError
from ces_core.solvers import available

PIPE_WIDTH = 200
"""Columns where no terminal says how many there are."""

SolversOption = Annotated[
    str | None,
    typer.Option(help="those compared, separated by commas; all but exact when left out", show_default=False),
]
SeedOption = Annotated[int, typer.Option(min=0, help="same seed, same rounds")]
PlotsOption = Annotated[bool, typer.Option("--plots/--no-plots", help="draw them; needs matplotlib")]


def placement(
    regime: Annotated[str, typer.Option(help="regimes, separated by commas")] = ",".join(REGIMES),
    tasks: Annotated[str, typer.Option(help="tasks in a job: 3-8, or 3,5,8")] = "3-8",
    rounds: Annotated[int, typer.Option(min=1, help="rounds for each regime and number of tasks")] = 30,
    seed: SeedOption = 42,
    nodes: Annotated[int, typer.Option(min=1, max=1000, help="nodes of the cluster")] = 10,
    solvers: SolversOption = None,
    time_limit: Annotated[
        float, typer.Option(min=0, help="seconds for a decision; 0: the solver's own bounds")
    ] = 0.005,
    anytime: Annotated[
        str, typer.Option(help="further time limits, seconds, for quality over time; empty: none")
    ] = "0.001,0.02,0.1",
    exact: Annotated[
        bool | None,
        typer.Option("--exact/--no-exact", help="prove optima; where the exact solver is there when left out"),
    ] = None,
    exact_limit: Annotated[float, typer.Option(min=0.1, help="seconds for the proof of a round")] = 10.0,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/placement"),
) -> None:
    """Solvers compared on single jobs: how many they place, how well, how far from the optimum, and how fast."""
    from ces_core.bench.machine import describe
    from ces_core.bench.placement import ContradictionError, Question, best_known, compare, write_answers
    from ces_core.bench.placement_plots import draw
    from ces_core.bench.placement_report import grids
    from ces_core.bench.placement_summary import summarise
    from ces_core.bench.results import write_results, write_tables
    from ces_core.bench.truth import find_truths

    question = Question(
        regimes=asking.names("--regime", regime, REGIMES),
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        rounds=rounds,
        seed=seed,
        nodes=nodes,
        solvers=asking.solvers("--solvers", solvers),
        time_limit_s=time_limit or None,
        anytime=asking.amounts("--anytime", anytime),
    )
    prove = asking.GROUND_TRUTH in available() if exact is None else exact
    if prove and asking.GROUND_TRUTH not in available():
        raise typer.BadParameter("there is no exact solver; use --no-exact", param_hint="--exact")
    with measuring(out, plots) as progress:
        machine = describe()
        bar = progress.add_task("decisions", total=question.decisions)
        answers = compare(question, lambda: progress.advance(bar))
        truths = {}
        if prove:
            all_rounds = list(question.all_rounds())
            bar = progress.add_task("proofs", total=len(all_rounds))
            truths = find_truths(all_rounds, exact_limit, lambda: progress.advance(bar))
        try:
            best = best_known(answers, truths)
        except ContradictionError as error:
            fail(str(error))
        results = {"benchmark": "placement", "machine": machine} | summarise(question, answers, truths, best)
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        write_answers(out, answers)
        pictures = draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", "decisions.csv", *pictures])


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
        except BrokenPlanError as error:
            file = out / "broken.json"
            file.write_text(json.dumps({"instance": error.instance, "answer": error.answer}, indent=1) + "\n")
            fail(f"{error}; instance and answer are in {file}")


def fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(1)


def show(tables: list[Grid], out: Path, files: list[str]) -> None:
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, emoji=False, highlight=False, width=PIPE_WIDTH)
    for table in tables:
        console.print(table.on_screen())
    console.print(f"written to {out}: {', '.join(files)}", soft_wrap=True)
