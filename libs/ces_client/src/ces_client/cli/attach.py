"""Follows a job to its end, for ``ces wait`` and ``ces submit --wait``: a live picture on a terminal, plain lines
elsewhere. Leaving does not end the job."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing, suppress

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ces_client.cli.output import Output, console, local_now, say, show, show_json
from ces_client.client import Client
from ces_client.errors import CesError
from ces_client.view.job import job_live, job_news, last_lines
from ces_common.messages.api import JobView
from ces_common.messages.events import Reason
from ces_common.states import JOB_OVER, JOB_WAITS, AllocationState, JobState

HOPELESS_S = 60.0  # before that, nodes may still be joining
DETACHED = 130  # as a shell has it for Ctrl-C
WORKERS_SHOWN = 2  # whose last lines are shown when a job has failed
LINES_SHOWN = 5
LONGEST_LINE = 200
LOG_S = 3.0  # a log that takes longer to read is not shown


def attach(client: Client, job: str, output: Output) -> int:
    """Follows a job; returns the exit status: 0 succeeded, 1 failed or cancelled, 2 no place for it, 130 detached."""
    last: JobView | None = None
    verdict = Verdict()
    try:
        with closing(_pictured(client, job, output)) as views:
            for last in views:
                if verdict.hopeless(last.waiting if last.state in JOB_WAITS else None, time.monotonic()):
                    break
    except KeyboardInterrupt:
        name = last.name if last else job
        told = f"\ndetached; {name} goes on. Attach again with `ces wait {job}`, end it with `ces cancel {job}`."
        console(stderr=True).print(Text(told), soft_wrap=True)
        return DETACHED
    assert last is not None
    if output == Output.JSON:
        show_json(last)
    if last.state in JOB_OVER:
        if output == Output.TABLE and (logs := logs_of_failed(client, last)):
            show(last_lines(last, logs))
        return 0 if last.state == JobState.SUCCEEDED else 1
    if output == Output.TABLE:
        note = Text("no place for it", style="bold red")
        note.append(f": it stays in the queue; take it out with `ces cancel {job}`", style="default not bold")
        console(stderr=True).print(note, soft_wrap=True)
    return 2


def logs_of_failed(client: Client, view: JobView) -> dict[str, list[str]]:
    """The last lines of the workers that made a job fail, by task; a log that cannot be read is left out.
    Empty for a job that has not failed."""
    if view.state != JobState.FAILED:
        return {}
    failed = [task.name for task in view.placement if task.state == AllocationState.FAILED][:WORKERS_SHOWN]
    logs: dict[str, list[str]] = {}
    for task in failed:
        with suppress(CesError):
            lines = client.jobs.last_log_lines(view.id, task, count=LINES_SHOWN, within_s=LOG_S)
            logs[task] = [line[:LONGEST_LINE] for line in lines]
    return logs


class Verdict:
    """Whether waiting is pointless: a permanent reason has held for longer than a cluster takes to start up."""

    def __init__(self) -> None:
        self._since: float | None = None

    def hopeless(self, waiting: Reason | None, now: float) -> bool:
        """To be asked at every view. ``waiting``: why the job waits, None if it does not; ``now``: a steady clock, in
        seconds."""
        if waiting is None or not waiting.forever:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since >= HOPELESS_S


def _pictured(client: Client, job: str, output: Output) -> Generator[JobView]:
    """The job's views, each shown as it passes."""
    screen = console()
    if output == Output.JSON:
        yield from client.jobs.watch(job)
    elif screen.is_terminal:
        yield from _live(client, job, screen)
    else:
        yield from _lines(client, job, screen)


def _live(client: Client, job: str, screen: Console) -> Generator[JobView]:
    with Live(console=screen, auto_refresh=False) as live:
        for view in client.jobs.watch(job):
            live.update(_with_hint(job_live(view, local_now()), view), refresh=True)
            yield view


def _with_hint(picture: RenderableType, view: JobView) -> RenderableType:
    if view.state in JOB_OVER:
        return picture
    return Group(picture, Text("\nCtrl-C detaches; the job goes on", style="dim"))


def _lines(client: Client, job: str, screen: Console) -> Generator[JobView]:
    before: JobView | None = None
    for view in client.jobs.watch(job):
        for line in job_news(before, view):
            say(f"{local_now():%H:%M:%S} {line}")
        before = view
        yield view
    if before is not None:
        screen.print(job_live(before, local_now(), reasons=False), soft_wrap=True)  # the lines above have said why
