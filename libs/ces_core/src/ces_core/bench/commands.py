"""``ces bench placement`` and its like: plain functions, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ces_core.bench import asking
from ces_core.bench.shell import measuring, show
from ces_core.errors import ProblemError
from ces_core.generate import REGIMES
from ces_core.solvers import DEFAULT, available
from ces_core.topologies import SHAPES

SolversOption = Annotated[
    str | None,
    typer.Option(help="those compared, separated by commas; all but exact when left out", show_default=False),
]
SeedOption = Annotated[int, typer.Option(min=0, help="same seed, same rounds")]
NodesOption = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="nodes of a shape; a file brings its own", show_default=False)
]
TopologyOption = Annotated[str, typer.Option(help=f"{', '.join(SHAPES)}, or a GraphML file, also in CES_DATA_DIR")]
ExactOption = Annotated[
    bool | None,
    typer.Option("--exact/--no-exact", help="prove optima; where the exact solver is there when left out"),
]
ExactLimitOption = Annotated[float, typer.Option(min=0.1, help="seconds for the proof of a round")]
RoundsOption = Annotated[int, typer.Option(min=1, help="rounds for each regime and number of tasks")]
RegimesOption = Annotated[str, typer.Option(help="regimes, separated by commas")]
TasksOption = Annotated[str, typer.Option(help="tasks in a job: 3-8, or 3,5,8")]
LimitOption = Annotated[float, typer.Option(min=0, help="seconds for a decision; 0: the solver's own bounds")]
PlotsOption = Annotated[bool, typer.Option("--plots/--no-plots", help="draw them; needs matplotlib")]


def placement(
    regime: RegimesOption = ",".join(REGIMES),
    tasks: TasksOption = "3-8",
    rounds: RoundsOption = 30,
    seed: SeedOption = 42,
    nodes: NodesOption = None,
    topology: TopologyOption = "random",
    solvers: SolversOption = None,
    time_limit: LimitOption = 0.005,
    anytime: Annotated[
        str, typer.Option(help="further time limits, seconds, for quality over time; empty: none")
    ] = "0.001,0.02,0.1",
    exact: ExactOption = None,
    exact_limit: ExactLimitOption = 10.0,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/placement"),
) -> None:
    """Solvers compared on single jobs: how many they place, how well, how far from the optimum, and how fast."""
    from ces_core.bench.experiment import Experiment, carry_out
    from ces_core.bench.placement import Question
    from ces_core.bench.placement_plots import draw
    from ces_core.bench.placement_report import grids
    from ces_core.bench.placement_summary import summarise

    question = Question(
        regimes=asking.names("--regime", regime, REGIMES),
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        rounds=rounds,
        seed=seed,
        nodes=asking.count_of_nodes(topology, nodes, 10),
        topology=asking.network(topology, nodes),
        solvers=asking.solvers("--solvers", solvers),
        time_limit_s=time_limit or None,
        anytime=asking.amounts("--anytime", anytime),
    )
    experiment = Experiment("placement", summarise, grids, draw)
    carry_out(experiment, question, proof_s=asking.proof_s(exact, exact_limit), plots=plots, out=out)


def online(
    loads: Annotated[
        str, typer.Option(help="CPU or memory asked for over time, by what is free; separated by commas")
    ] = "0.5,0.75,1,1.25",
    regime: Annotated[str, typer.Option(help="regime of the links")] = "tight",
    nodes: NodesOption = None,
    topology: TopologyOption = "random",
    jobs: Annotated[int, typer.Option(min=10, max=100_000, help="jobs that arrive")] = 200,
    tasks: Annotated[str, typer.Option(help="tasks in a job: 3-8, or 3,5,8; bounds those of a trace")] = "3-8",
    duration: Annotated[float, typer.Option(min=1, help="mean seconds that a job runs")] = 600.0,
    patience: Annotated[float, typer.Option(min=0, help="seconds that a job waits for a place")] = 600.0,
    policy: Annotated[str, typer.Option(help="fcfs, or fcfs-backfill: who waits holds up nobody")] = "fcfs-backfill",
    trace: Annotated[
        str | None, typer.Option(help="CSV file with arrivals, durations and tasks; also looked for in CES_DATA_DIR")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="clusters and sequences of jobs")] = 5,
    seed: SeedOption = 42,
    solvers: SolversOption = None,
    time_limit: Annotated[float, typer.Option(min=0, help="seconds for a decision; 0: no limit")] = 0.02,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/online"),
) -> None:
    """Solvers compared on jobs that arrive, wait, run and leave: acceptance, waiting, use of nodes and links."""
    from ces_core.bench.machine import describe
    from ces_core.bench.online import POLICIES, Question, compare
    from ces_core.bench.online_plots import draw
    from ces_core.bench.online_report import grids
    from ces_core.bench.results import write_results, write_tables

    (one_regime,) = asking.names("--regime", regime, REGIMES, most=1)
    (one_policy,) = asking.names("--policy", policy, POLICIES, most=1)
    question = Question(
        loads=asking.amounts("--loads", loads, least=1),
        regime=one_regime,
        nodes=asking.count_of_nodes(topology, nodes, 20),
        topology=asking.network(topology, nodes),
        jobs=jobs,
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        duration_s=duration,
        patience_s=patience,
        policy=one_policy,
        repeats=repeats,
        seed=seed,
        solvers=asking.solvers("--solvers", solvers),
        time_limit_s=time_limit or None,
        trace=None if trace is None else asking.data_file("--trace", trace),
    )
    try:
        question.workload(0)
    except ProblemError as error:
        raise typer.BadParameter(str(error), param_hint="--trace") from error
    with measuring(out, plots) as progress:
        machine = describe()
        bar = progress.add_task("simulations", total=len(question.loads) * repeats * len(question.solvers))
        results = {"benchmark": "online", "machine": machine} | compare(question, lambda: progress.advance(bar))
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        pictures = draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", *pictures])


def scale(
    nodes: Annotated[str, typer.Option(help="nodes of the clusters, separated by commas")] = "100,1000,10000",
    topology: Annotated[str, typer.Option(help=f"one of {', '.join(SHAPES)}")] = "random",
    regime: Annotated[str, typer.Option(help="regime of the links")] = "tight",
    tasks: Annotated[int, typer.Option(min=1, max=100, help="tasks in a job")] = 16,
    jobs: Annotated[int, typer.Option(min=2, help="jobs on each cluster")] = 20,
    time_limits: Annotated[str, typer.Option(help="seconds for a decision, separated by commas")] = "0.1",
    reference: Annotated[str, typer.Option(help="the solver that gets long for every job, for comparison")] = DEFAULT,
    long: Annotated[float, typer.Option(min=0.001, help="seconds that it gets")] = 5.0,
    seed: SeedOption = 42,
    solvers: SolversOption = None,
    plots: PlotsOption = True,
    out: Annotated[Path, typer.Option(help="where results, tables and plots go")] = Path("bench-results/scale"),
) -> None:
    """Solvers compared on clusters of growing size: time of a decision, the first and later ones, quality, memory."""
    from ces_core.bench.machine import describe
    from ces_core.bench.results import write_results, write_tables
    from ces_core.bench.scale import Question, compare
    from ces_core.bench.scale_plots import draw
    from ces_core.bench.scale_report import grids

    (shape,) = asking.names("--topology", topology, SHAPES, most=1)
    (one_regime,) = asking.names("--regime", regime, REGIMES, most=1)
    (judge,) = asking.names("--reference", reference, sorted(available()), most=1)
    question = Question(
        nodes=asking.whole_numbers("--nodes", nodes, 2, 100_000),
        topology=shape,
        regime=one_regime,
        tasks=tasks,
        jobs=jobs,
        seed=seed,
        solvers=asking.solvers("--solvers", solvers),
        limits=asking.amounts("--time-limits", time_limits, least=1),
        reference=judge,
        reference_s=long,
    )
    with measuring(out, plots) as progress:
        machine = describe()
        bar = progress.add_task("solvers and sizes", total=question.processes)
        results = {"benchmark": "scale", "machine": machine} | compare(question, lambda: progress.advance(bar))
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        pictures = draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", *pictures])
