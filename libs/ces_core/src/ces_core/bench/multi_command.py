"""``ces bench multi``: queue policies side by side, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ces_core.bench import asking
from ces_core.bench.commands import PlotsOption, RegimesOption, SeedOption
from ces_core.bench.shell import measuring, show
from ces_core.errors import ProblemError
from ces_core.generate import REGIMES
from ces_core.solvers import DEFAULT, available


def multi(
    regime: RegimesOption = "tight",
    loads: Annotated[
        str, typer.Option(help="arrivals, by what the cluster gets through in order of arrival; separated by commas")
    ] = "0.9",
    nodes: Annotated[int, typer.Option(min=2, max=10_000, help="nodes of a random network")] = 20,
    jobs: Annotated[int, typer.Option(min=10, max=100_000, help="jobs that arrive")] = 100,
    tasks: Annotated[str, typer.Option(help="tasks in a job: 1-8, or 3,5,8; bounds those of a trace")] = "1-8",
    duration: Annotated[float, typer.Option(min=1, help="mean seconds that a job runs")] = 600.0,
    bound: Annotated[float, typer.Option(min=1, help="seconds of waiting after which a job has starved")] = 14_400.0,
    trace: Annotated[
        str | None, typer.Option(help="CSV file with arrivals, durations and tasks; also looked for in CES_DATA_DIR")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="clusters and sequences of jobs")] = 2,
    seed: SeedOption = 42,
    solver: Annotated[str, typer.Option(help="the single-job solver of all policies")] = DEFAULT,
    policies: Annotated[
        str | None, typer.Option(help="those compared, separated by commas", show_default="all, with either placement")
    ] = None,
    misjudged: Annotated[
        float, typer.Option(min=0, max=5, help="jobs misjudge their durations by a lognormal factor of this sigma")
    ] = 0.0,
    time_limit: Annotated[float, typer.Option(min=0, help="seconds for a decision; 0: no limit")] = 0.0,
    cycles: Annotated[int, typer.Option(min=0, help="cycles timed on 100 nodes with 1000 waiting jobs; 0: none")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="clusters that are simulated at once")] = 1,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/multi"),
) -> None:
    """Queue policies compared on jobs that arrive, wait, run and leave: waiting, fairness, starvation, use."""
    from ces_core.bench.machine import describe
    from ces_core.bench.multi import Question, compare
    from ces_core.bench.multi_cycles import Crowd, measure
    from ces_core.bench.multi_plots import draw
    from ces_core.bench.multi_report import grids
    from ces_core.bench.results import write_results, write_tables

    (one_solver,) = asking.names("--solver", solver, sorted(available()), most=1)
    regimes = asking.names("--regime", regime, REGIMES)
    question = Question(
        regimes=regimes,
        loads=asking.amounts("--loads", loads, least=1),
        nodes=nodes,
        jobs=jobs,
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        duration_s=duration,
        bound_s=bound,
        repeats=repeats,
        seed=seed,
        solver=one_solver,
        time_limit_s=time_limit or None,
        trace=None if trace is None else asking.data_file("--trace", trace),
        misjudged=misjudged,
    )
    if policies is not None:
        question = replace(question, only=asking.names("--policies", policies, tuple(question.policies())))
    try:
        replace(question, jobs=10).workload(regimes[0], 0, question.cluster(regimes[0], 0))
    except ProblemError as error:
        raise typer.BadParameter(str(error), param_hint="--trace") from error
    with measuring(out, plots) as progress:
        machine = describe()
        results: dict[str, Any] = {"benchmark": "multi", "machine": machine}
        if cycles:
            bar = progress.add_task("cycles", total=cycles)
            crowd = Crowd(
                nodes=100,
                waiting=1000,
                cycles=cycles,
                regime=regimes[0],
                tasks=question.tasks,
                duration_s=duration,
                bound_s=bound,
                seed=seed,
                solver=one_solver,
                time_limit_s=question.time_limit_s,
            )
            results["cycles"] = measure(crowd, lambda: progress.advance(bar))
        bar = progress.add_task("clusters", total=len(regimes) * repeats)
        results |= compare(question, processes, lambda: progress.advance(bar))
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        pictures = draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", *pictures])
