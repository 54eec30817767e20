"""What the control-plane benchmark was asked and what it found, as data and as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from ces_core.bench.machine import describe, in_words
from ces_testbed.bench.load import Spread


@dataclass(frozen=True)
class Load:
    """``rate``: jobs offered per second; 0 submits as fast as the API takes them. ``run_s``: how long workers run."""

    nodes: int = 100
    jobs: int = 500
    tasks: int = 5
    rate: float = 0.0
    run_s: float = 10.0
    seed: int = 1


@dataclass
class Outcome:
    load: Load
    database: str
    running: int = 0
    succeeded: int = 0
    jobs_per_s: float = 0.0
    submit_to_running_ms: Spread | None = None
    api_submit_ms: Spread | None = None
    stages_ms: dict[str, Spread] = field(default_factory=dict)
    messages_per_job: float = 0.0  # received by the broker, heartbeats and their answers left out
    events_per_job: float = 0.0
    heartbeats_per_s: float = 0.0
    heartbeat_ms: Spread | None = None
    cpu_ms_per_job: dict[str, float] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=describe)


def table(outcome: Outcome) -> Table:
    load = outcome.load
    offered = f"{load.rate:g} jobs/s offered" if load.rate else "all at once"
    shown = Table(
        title=f"Control plane: {load.nodes} nodes, {load.jobs} jobs of {load.tasks} tasks, {offered}, "
        f"{outcome.database}, seed {load.seed} ({in_words(outcome.machine)})",
        title_justify="left",
    )
    shown.add_column("what")
    for column in ("p50", "p90", "p99", "worst", "n"):
        shown.add_column(column, justify="right")

    def row(name: str, spread: Spread | None) -> None:
        if spread is not None:
            shown.add_row(
                name, *(f"{v:,.1f}" for v in (spread.p50, spread.p90, spread.p99, spread.worst)), str(spread.count)
            )

    row("submit to running, ms", outcome.submit_to_running_ms)
    for name, spread in outcome.stages_ms.items():
        row(f"  {name}, ms", spread)
    row("API submission, ms", outcome.api_submit_ms)
    row("heartbeat round trip, ms", outcome.heartbeat_ms)
    shown.add_section()
    shown.add_row("jobs brought to running per second", f"{outcome.jobs_per_s:g}")
    shown.add_row("jobs running / succeeded", f"{outcome.running} / {outcome.succeeded}")
    shown.add_row("events per job", f"{outcome.events_per_job:g}")
    shown.add_row("messages per job, heartbeats left out", f"{outcome.messages_per_job:g}")
    shown.add_row("heartbeats answered per second", f"{outcome.heartbeats_per_s:g}")
    for name, cpu in outcome.cpu_ms_per_job.items():
        shown.add_row(f"CPU per job, {name}, ms", f"{cpu:g}")
    return shown
