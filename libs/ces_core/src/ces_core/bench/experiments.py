"""``ces bench thesis``, ``quality``, ``generalise``, ``pareto`` and ``warm-start``: experiments with the learned
scheduler in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ces_core.bench import asking
from ces_core.bench.commands import (
    ExactLimitOption,
    ExactOption,
    LimitOption,
    PlotsOption,
    RegimesOption,
    RoundsOption,
    SeedOption,
    TasksOption,
)
from ces_core.bench.shell import measuring, show
from ces_core.generate import REGIMES
from ces_core.solvers import DEFAULT, get_solver
from ces_core.topologies import SHAPES

THESIS = ("random", "smart", "flexitask", "ppo-balance", "ces-ppo-thesis")
"""The five schedulers of the thesis's section 4.3; the last is its own, as it describes it."""
OURS = ("ces-ppo", get_solver(DEFAULT).name)
GENERAL = ("ces-ppo", "ces-ppo-64", "ces-ppo-search", "greedy", "search")
TRADING = ("exact", "search", "greedy", "ces-ppo")
SIZES = "10,20,50,100"
CASES = "10:3-8,100:16,1000:16"
BALANCE = "0.1,0.5,0.7,0.8,0.85,0.9,0.95"

OutOption = Annotated[Path, typer.Option(help="where results, tables and plots go")]
SolversOption = Annotated[
    str | None, typer.Option(help="those compared, separated by commas", show_default="those of the page")
]


def thesis(
    regime: RegimesOption = ",".join(REGIMES),
    tasks: TasksOption = "3-8",
    rounds: RoundsOption = 30,
    seed: SeedOption = 42,
    solvers: SolversOption = None,
    time_limit: LimitOption = 0,
    exact: ExactOption = None,
    exact_limit: ExactLimitOption = 10.0,
    plots: PlotsOption = True,
    out: OutOption = Path("bench-results/thesis"),
) -> None:
    """The thesis's simulation (figure 4-3): its five schedulers and two of ours, by number of tasks."""
    from ces_core.bench.experiment import Experiment, carry_out
    from ces_core.bench.placement import Question
    from ces_core.bench.placement_plots import draw
    from ces_core.bench.placement_summary import summarise
    from ces_core.bench.thesis_report import grids

    question = Question(
        regimes=asking.names("--regime", regime, REGIMES),
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        rounds=rounds,
        seed=seed,
        nodes=10,
        topology="random",
        solvers=asking.solvers_or("--solvers", solvers, THESIS + OURS),
        time_limit_s=time_limit or None,
        anytime=(),
    )
    experiment = Experiment("thesis", summarise, grids, draw)
    carry_out(experiment, question, proof_s=asking.proof_s(exact, exact_limit), plots=plots, out=out)


def quality(
    regime: RegimesOption = ",".join(REGIMES),
    tasks: TasksOption = "3-8",
    rounds: RoundsOption = 10,
    seed: SeedOption = 42,
    solvers: SolversOption = None,
    time_limits: Annotated[
        str, typer.Option(help="seconds for a decision, separated by commas")
    ] = "0.001,0.005,0.02,0.1",
    exact: ExactOption = None,
    exact_limit: ExactLimitOption = 10.0,
    plots: PlotsOption = True,
    out: OutOption = Path("bench-results/quality"),
) -> None:
    """Quality against the time of a decision, every solver under several time limits."""
    from ces_core.bench.experiment import Experiment, carry_out
    from ces_core.bench.placement import Question
    from ces_core.bench.placement_summary import summarise
    from ces_core.bench.quality_plots import draw
    from ces_core.bench.quality_report import grids

    limits = asking.amounts("--time-limits", time_limits, least=1)
    question = Question(
        regimes=asking.names("--regime", regime, REGIMES),
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        rounds=rounds,
        seed=seed,
        nodes=10,
        topology="random",
        solvers=asking.solvers_or("--solvers", solvers, (asking.GROUND_TRUTH, *asking.solvers("--solvers", None))),
        time_limit_s=limits[-1],  # the longest goes before the clock starts: nothing is left to be compiled
        anytime=limits[:-1],
    )
    experiment = Experiment("quality", summarise, grids, draw)
    carry_out(experiment, question, proof_s=asking.proof_s(exact, exact_limit), plots=plots, out=out)


def generalise(
    nodes: Annotated[str, typer.Option(help="nodes of random networks, separated by commas; empty: none")] = SIZES,
    topologies: Annotated[
        str | None,
        typer.Option(
            help="GraphML files, separated by commas, also in CES_DATA_DIR; empty: none",
            show_default="all in CES_DATA_DIR",
        ),
    ] = None,
    regime: RegimesOption = "tight",
    tasks: TasksOption = "8,16",
    rounds: Annotated[int, typer.Option(min=1, help="rounds for each network, regime and number of tasks")] = 10,
    seed: SeedOption = 42,
    solvers: SolversOption = None,
    time_limit: LimitOption = 0,
    exact: ExactOption = None,
    exact_limit: ExactLimitOption = 1.0,
    plots: PlotsOption = True,
    out: OutOption = Path("bench-results/generalise"),
) -> None:
    """What a policy is worth on networks and jobs that it was not trained on: larger ones, and real topologies."""
    from ces_core.bench.experiment import Experiment, carry_out
    from ces_core.bench.generalise import Network, Question, summarise
    from ces_core.bench.generalise_plots import draw
    from ces_core.bench.generalise_report import grids
    from ces_core.topologies.graphml import at_hand

    sizes = asking.whole_numbers("--nodes", nodes, 2, 10_000) if nodes else ()
    files = at_hand() if topologies is None else tuple(filter(None, topologies.split(",")))
    networks = [Network("random", size) for size in sizes] + [Network(asking.network(file, None)) for file in files]
    if not networks:
        raise typer.BadParameter("neither sizes nor files are named", param_hint="--nodes")
    if shapes := [file for file in files if file in SHAPES]:
        raise typer.BadParameter(f"{shapes[0]!r} is no GraphML file", param_hint="--topologies")
    question = Question(
        networks=tuple(networks),
        regimes=asking.names("--regime", regime, REGIMES),
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        rounds=rounds,
        seed=seed,
        solvers=asking.solvers_or("--solvers", solvers, GENERAL),
        time_limit_s=time_limit or None,
    )
    experiment = Experiment("generalise", summarise, grids, draw)
    carry_out(experiment, question, proof_s=asking.proof_s(exact, exact_limit), plots=plots, out=out)


def pareto(
    balance: Annotated[
        str, typer.Option(help="weights of balance between 0 and 1, that of bandwidth is the rest; separated by commas")
    ] = BALANCE,
    regime: RegimesOption = ",".join(REGIMES),
    tasks: TasksOption = "6",
    rounds: RoundsOption = 20,
    seed: SeedOption = 42,
    solvers: SolversOption = None,
    time_limit: LimitOption = 0.1,
    plots: PlotsOption = True,
    out: OutOption = Path("bench-results/pareto"),
) -> None:
    """Load imbalance against bandwidth satisfaction, as the weights of the objective vary."""
    from ces_core.bench.experiment import Experiment, carry_out
    from ces_core.bench.pareto import Question, summarise
    from ces_core.bench.pareto_plots import draw
    from ces_core.bench.pareto_report import grids

    weights = asking.amounts("--balance", balance, least=1)
    if weights[-1] >= 1:
        raise typer.BadParameter(f"{weights[-1]:g} is not below 1", param_hint="--balance")
    question = Question(
        balance=weights,
        regimes=asking.names("--regime", regime, REGIMES),
        tasks=asking.whole_numbers("--tasks", tasks, 1, 100),
        rounds=rounds,
        seed=seed,
        solvers=asking.solvers_or("--solvers", solvers, TRADING),
        time_limit_s=time_limit or None,
    )
    carry_out(Experiment("pareto", summarise, grids, draw), question, proof_s=None, plots=plots, out=out)


def warm_start(
    cases: Annotated[
        str, typer.Option(help="nodes of random networks and tasks of jobs, as 10:3-8, separated by commas")
    ] = CASES,
    regime: RegimesOption = ",".join(REGIMES),
    rounds: Annotated[int, typer.Option(min=1, help="jobs for each case, regime and number of tasks")] = 30,
    seed: SeedOption = 42,
    base: Annotated[str, typer.Option(help="the solver that is compared with")] = "search",
    other: Annotated[str, typer.Option(help="the solver that may be better")] = "ces-ppo-search",
    time_limits: Annotated[str, typer.Option(help="seconds for a decision, separated by commas")] = "0.001,0.005",
    long: Annotated[float, typer.Option(min=0.001, help="seconds in which to find what could be found")] = 0.5,
    out: OutOption = Path("bench-results/warm-start"),
) -> None:
    """What a search gains by learned plans to begin with, in the first milliseconds and on large clusters."""
    from ces_core.bench.machine import describe
    from ces_core.bench.results import write_results, write_tables
    from ces_core.bench.warm_start import Case, Question, compare, summarise
    from ces_core.bench.warm_start_report import grids

    ((base,), (other,)) = (asking.solvers(option, name) for option, name in (("--base", base), ("--other", other)))
    question = Question(
        cases=tuple(Case(nodes, tasks) for nodes, tasks in asking.sizes("--cases", cases)),
        regimes=asking.names("--regime", regime, REGIMES),
        rounds=rounds,
        seed=seed,
        base=base,
        other=other,
        limits=asking.amounts("--time-limits", time_limits, least=1),
        long_s=long,
    )
    with measuring(out, plots=False) as progress:
        machine = describe()
        bar = progress.add_task("jobs", total=sum(1 for _ in question.all_rounds()))
        taken = compare(question, lambda: progress.advance(bar))
        answers = [each.answer for each in taken]
        machine["wall_over_cpu"] = sum(each.wall_ms for each in answers) / sum(each.cpu_ms for each in answers)
        results = {"benchmark": "warm-start", "machine": machine} | summarise(question, taken)
        tables = grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
    show(tables, out, ["results.json", "tables.md"])
