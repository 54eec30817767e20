"""The testbed's measurements under ``ces bench``: control-plane, queue, network, reroute and testbed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ces_client.cli.output import console
from ces_testbed.bench.testbed.question import ARCHITECTURES, FIRST_SEED, SCHEDULERS


def control_plane(
    nodes: Annotated[int, typer.Option(min=6, max=1000, help="simulated agents")] = 100,
    jobs: Annotated[int, typer.Option(min=1, max=100_000, help="jobs in all")] = 500,
    tasks: Annotated[int, typer.Option(min=1, max=100, help="tasks of each job, in a ring")] = 5,
    rate: Annotated[float, typer.Option(min=0, help="jobs offered per second; 0: all at once")] = 0.0,
    run_s: Annotated[float, typer.Option("--run-s", min=0, help="how long each worker runs, seconds")] = 10.0,
    database: Annotated[str | None, typer.Option(help="a postgresql:// URL; SQLite when left out")] = None,
    seed: Annotated[int, typer.Option(help="same seed, same jobs")] = 1,
    out: Annotated[Path, typer.Option(help="where results.json and the plots go")] = Path(
        "bench-results/control-plane"
    ),
) -> None:
    """Real services, NATS and database under load from simulated agents: submit-to-running, jobs/s, messages, CPU."""
    from ces_testbed.bench.control_plane import run
    from ces_testbed.bench.outcome import Load, table

    screen = console()
    outcome = run(Load(nodes, jobs, tasks, rate, run_s, seed), out, screen, database)
    screen.print(table(outcome))
    screen.print(f"written: {out}/results.json, latency.png, progress.png")


def queue(
    nodes: Annotated[int, typer.Option(min=8, max=1000, help="simulated agents")] = 50,
    jobs: Annotated[int, typer.Option(min=1, max=100_000, help="jobs, all submitted at once")] = 1000,
    run_s: Annotated[float, typer.Option("--run-s", min=0.1, help="how long jobs run on average, seconds")] = 8.0,
    database: Annotated[str | None, typer.Option(help="a postgresql:// URL; SQLite when left out")] = None,
    parameters: Annotated[
        Path | None, typer.Option("--queue", help="a file of the queue's parameters; all defaults when left out")
    ] = None,
    seed: Annotated[int, typer.Option(help="same seed, same jobs")] = 1,
    out: Annotated[Path, typer.Option(help="where results.json and tables.md go")] = Path("bench-results/queue"),
) -> None:
    """Many more jobs than there is room for, on simulated agents; the event log of it all is audited."""
    from ces_core.bench.results import write_tables
    from ces_core.bench.shell import fail, measuring, show
    from ces_testbed.bench.queue.load import QueueLoad
    from ces_testbed.bench.queue.report import grids
    from ces_testbed.bench.queue.run import run
    from ces_testbed.choices import checked_queue

    checked_queue(parameters)
    with measuring(out, plots=False) as progress:
        results = run(QueueLoad(nodes, jobs, run_s, seed), out, progress, database, parameters)
    tables = grids(results)
    write_tables(out, results["machine"], tables)
    show(tables, out, ("results.json", "tables.md"))
    if findings := results["audit"]["findings"]:
        fail(f"{len(findings)} findings, first: event {findings[0]['event']}: {findings[0]['text']}")


def network(
    seconds: Annotated[int, typer.Option(min=2, max=600, help="length of each measurement, seconds")] = 10,
    changes: Annotated[int, typer.Option(min=1, max=1000, help="changes of a live flow's allocation")] = 20,
    seed: Annotated[int, typer.Option(help="same seed, same changes")] = 1,
    out: Annotated[Path, typer.Option(help="where results.json, tables.md and the plot go")] = Path(
        "bench-results/network"
    ),
) -> None:
    """Is what was allocated what flows? Rates under floods, victims, new connections, changes, many flows. As root."""
    from ces_core.bench.results import write_tables
    from ces_testbed.bench.network.experiment import Question
    from ces_testbed.bench.network.report import grids
    from ces_testbed.bench.network.run import run

    screen = console()
    results = run(Question(seconds=seconds, changes=changes, seed=seed), out, screen)
    tables = grids(results)
    write_tables(out, results["machine"], tables)
    for grid in tables:
        screen.print(grid.on_screen())
    screen.print(f"written: {out}/results.json, tables.md, flows.png")


def reroute(
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="how often the wire is taken away")] = 10,
    out: Annotated[Path, typer.Option(help="where results.json goes")] = Path("bench-results/reroute"),
) -> None:
    """How long a running job's stream stands still when the wire under it is gone. As root."""
    from ces_testbed.bench.reroute import run

    screen = console()
    results = run(rounds, out, screen.print)
    screen.print(f"milliseconds from the loss of the wire to traffic on the other way: {results['until_ms']}")
    screen.print(f"written: {out}/results.json")


def _number(value: float) -> float:
    """A NaN is within any bounds."""
    if math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def on_testbed(
    schedulers: Annotated[
        str, typer.Option(help="those compared, separated by commas: any that `ces solvers` lists")
    ] = ",".join(SCHEDULERS),
    architectures: Annotated[
        str, typer.Option(help="gossip, etree, parameter-server or ring, separated by commas")
    ] = ",".join(ARCHITECTURES),
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="so many seeds")] = 5,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="the first of them")] = FIRST_SEED,
    accuracy: Annotated[
        float, typer.Option(min=0.2, max=0.95, callback=_number, help="at which a training is done")
    ] = 0.9,
    limit_s: Annotated[
        float, typer.Option("--limit-s", min=5, max=3600, callback=_number, help="longest training, seconds")
    ] = 90.0,
    out: Annotated[Path, typer.Option(help="where results.json, tables.md and the plots go")] = Path(
        "bench-results/testbed"
    ),
) -> None:
    """Schedulers compared by what jobs get on ten emulated hosts: plans, bandwidth, time to an accuracy. As root."""
    from ces_core.bench import asking
    from ces_core.bench.results import write_tables
    from ces_core.bench.shell import fail, measuring, show
    from ces_core.solvers import available
    from ces_testbed.bench.testbed.plots import testbed_plots
    from ces_testbed.bench.testbed.question import Question
    from ces_testbed.bench.testbed.report import grids
    from ces_testbed.bench.testbed.run import run
    from ces_testbed.bench.testbed.scenario import TRAINING
    from ces_testbed.errors import TestbedError

    question = Question(
        schedulers=asking.names("--schedulers", schedulers, sorted(available())),
        architectures=asking.names("--architectures", architectures, list(TRAINING)),
        seeds=tuple(range(first_seed, first_seed + seeds)),
        accuracy=accuracy,
        limit_s=limit_s,
    )
    with measuring(out, plots=True) as progress:
        bar = progress.add_task("starting", total=question.runs)
        try:
            results = run(question, out, lambda name: progress.update(bar, advance=1, description=name))
        except TestbedError as error:
            fail(str(error))
    tables = grids(results)
    write_tables(out, results["machine"], tables)
    testbed_plots(results, out)
    show(tables, out, ("results.json", "tables.md", "planned.png", "time-to-accuracy.png"))
