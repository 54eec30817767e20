"""``ces bench control-plane``, ``ces bench network`` and ``ces bench reroute``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ces_client.cli.output import console


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
