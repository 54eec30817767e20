"""Following a job to its end: a live picture on a terminal, plain lines elsewhere. Leaving does not end the job."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ces_client.cli.output import Output, console, local_now, show_json
from ces_client.client import Client
from ces_client.view import job_live, job_news
from ces_client.view.standing import reason_text
from ces_common.messages.api import JobView
from ces_common.messages.events import Reason
from ces_common.states import JOB_OVER, JOB_WAITS, JobState

HOPELESS_S = 60.0  # nodes may still be joining
DETACHED = 130  # as a shell has it for Ctrl-C


def attach(client: Client, job: str, output: Output) -> int:
    """Follow a job; answers the exit status: 0 succeeded, 1 failed or cancelled, 2 no place for it, 130 detached."""
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
        return 0 if last.state == JobState.SUCCEEDED else 1
    if output == Output.TABLE and last.waiting is not None:
        note = Text("no place for it: ", style="bold red").append_text(reason_text(last.waiting))
        note.append(f"\nit stays in the queue; take it out with `ces cancel {job}`")
        console(stderr=True).print(note, soft_wrap=True)
    return 2


class Verdict:
    """Whether waiting has become pointless: the reason has held for good, for longer than a cluster takes to gather."""

    def __init__(self) -> None:
        self._since: float | None = None

    def hopeless(self, waiting: Reason | None, now: float) -> bool:
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
            typer.echo(f"{local_now():%H:%M:%S} {line}")
        before = view
        yield view
    if before is not None:
        screen.print(job_live(before, local_now()))
