"""The demonstration: one training job on a cluster of its own, from nothing to a clean machine again."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ces_client import Client, load_job
from ces_client.view.formats import DASH, path_text, rate
from ces_client.view.job import job_live, job_news, task_progress
from ces_client.view.tables import plain_table
from ces_common.messages.api import FlowView, JobView
from ces_common.states import JOB_OVER, JobState
from ces_testbed.errors import TestbedError

PATIENCE_S = 240.0


class Ended(BaseException):
    """SIGINT or SIGTERM arrived. Not an Exception: nothing on the way may take it for a failure of its own."""


class Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into ``Ended``, but only where that is safe; elsewhere they wait."""

    def __init__(self) -> None:
        self.came = False
        self._raising = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """Raises Ended inside, at once if a signal came before."""
        self._raising = True
        try:
            if self.came:
                raise Ended
            yield
        finally:
            self._raising = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self._raising:
            self._raising = False
            raise Ended


@dataclass
class Observed:
    """What the job's flows carried while it ran, in bit/s: the largest of the means that were reported."""

    best: dict[tuple[str, str], float] = field(default_factory=dict)

    def look(self, view: JobView) -> None:
        for flow in view.flows:
            if flow.measured is not None:
                key = flow.src, flow.dst
                self.best[key] = max(self.best.get(key, 0.0), flow.measured)

    def of(self, flow: FlowView) -> float | None:
        return self.best.get((flow.src, flow.dst))


def demo_job() -> Path:
    """The job that the demonstration runs; it comes with the package."""
    source = resources.files("ces_testbed") / "data" / "digits-ring.yaml"
    with resources.as_file(source) as path:
        return path


def run_job(client: Client, console: Console) -> tuple[JobView, Observed]:
    """Submit the job and show it until it is over. Raises TestbedError after PATIENCE_S."""
    job = client.jobs.submit(load_job(demo_job()))
    observed = Observed()
    deadline = time.monotonic() + PATIENCE_S
    last = job
    with closing(_shown(client, job.id, console)) as views:
        for last in views:
            observed.look(last)
            if last.state not in JOB_OVER and time.monotonic() > deadline:
                raise TestbedError(f"the job is still {last.state} after {PATIENCE_S:g} s")
    return last, observed


def _shown(client: Client, job: str, console: Console) -> Generator[JobView]:
    return _live(client, job, console) if console.is_terminal else _lines(client, job, console)


def _live(client: Client, job: str, console: Console) -> Generator[JobView]:
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for view in client.jobs.watch(job):
            live.update(job_live(view, datetime.now(UTC)), refresh=True)
            yield view


def _lines(client: Client, job: str, console: Console) -> Generator[JobView]:
    before: JobView | None = None
    for view in client.jobs.watch(job):
        for line in job_news(before, view):
            console.print(f"{datetime.now(UTC):%H:%M:%S} {line}")
        before = view
        yield view
    if before is not None:
        console.print(job_live(before, datetime.now(UTC)))


def flow_summary(view: JobView, observed: Observed) -> Table:
    """For each flow its rate and the most that it was seen to carry."""
    right = ("RATE", "MEASURED AT BEST", "OF RATE")
    table = plain_table("FLOW", "PATH", *right, right=right)
    for flow in view.flows:
        seen = observed.of(flow)
        local = len(flow.path) == 1
        share = f"{seen / flow.rate:.0%}" if seen is not None and flow.rate and not local else DASH
        measured = "no link" if local else rate(seen)
        table.add_row(f"{flow.src} → {flow.dst}", path_text(flow.path), rate(flow.rate), measured, share)
    return table


def result_line(view: JobView) -> Text:
    """Accuracy, rounds and time of a job that succeeded; the reason of one that did not."""
    if view.state != JobState.SUCCEEDED:
        return Text(f"the job {view.state}: {view.reason or 'no reason given'}", style="bold red")
    results = [task_progress(task.progress) for task in view.placement]
    accuracies = [result.accuracy for result in results if result.accuracy is not None]
    rounds = [result.round for result in results if result.round is not None]
    text = Text(f"{len(view.placement)} workers", style="bold")
    if rounds:
        text.append(f", {max(rounds)} rounds")
    if accuracies:
        text.append(f", accuracy {min(accuracies):.1%} at every worker")
    if view.started_at is not None and view.finished_at is not None:
        text.append(
            f"; placed, networked and trained in {(view.finished_at - view.submitted_at).total_seconds():.1f} s"
        )
    return text


def new_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="ces-demo-"))
