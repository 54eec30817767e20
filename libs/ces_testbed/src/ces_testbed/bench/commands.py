"""``ces bench control-plane``."""

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
