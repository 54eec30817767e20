"""Commands about one job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.attach import attach
from ces_client.cli.output import Output, OutputOption, console, local_now, show, show_json, show_json_line
from ces_client.client import Client
from ces_client.errors import ApiError, CesError
from ces_client.files import load_job
from ces_client.view import committed_plan, job_facts, job_live, plan_answer, waiting_text
from ces_client.view.words import since
from ces_common.messages.api import JobView, PlanView
from ces_common.states import JobState

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="a job's id, or a name: the latest job that bears it")]
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="a job file, YAML or JSON")]
DECISION_S = 2.0  # for which the scheduler's first word on a new job is awaited
LOOK_S = 0.1
TASK_STYLES = ("cyan", "magenta", "green", "yellow", "blue", "red")


def submit(
    file: FileArgument,
    wait: Annotated[bool, typer.Option("--wait", help="follow the job until it is over")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Submit a job."""
    job = load_job(file)
    with session.connect() as client:
        view = client.jobs.submit(job)
        if wait:
            raise typer.Exit(attach(client, view.id, output))
        if output == Output.TABLE:
            show(Text(f"{view.name} submitted: {view.id}"))
        view = _decided(client, view)
    if output == Output.JSON:
        show_json(view)
    else:
        show(_first_word(view))


def _decided(client: Client, view: JobView) -> JobView:
    """The job as it is once the scheduler has looked at it, or after a moment all the same."""
    until = time.monotonic() + DECISION_S
    while view.state is JobState.QUEUED and not (view.waiting or view.standing) and time.monotonic() < until:
        time.sleep(LOOK_S)
        try:
            view = client.jobs.get(view.id)
        except CesError:  # it is submitted, whatever becomes of looking
            break
    return view


def _first_word(view: JobView) -> Text:
    if view.state is not JobState.QUEUED:
        nodes = f" on {', '.join(view.nodes)}" if view.nodes else ""
        return Text(f"{view.state}{nodes}")
    if view.waiting or view.standing:
        return Text("it ").append_text(waiting_text(view.waiting, view.standing, local_now()))
    return Text(f"not decided yet; `ces describe job {view.id}` shows how it goes")


def wait(job: JobArgument, output: OutputOption = Output.TABLE) -> None:
    """Follow a job until it is over."""
    with session.connect() as client:
        raise typer.Exit(attach(client, session.job_id(client, job), output))


def plan(file: FileArgument, output: OutputOption = Output.TABLE) -> None:
    """Show where a job would go, and why; nothing is started."""
    job = load_job(file)
    with session.connect() as client:
        answer = client.plan(job)
    if output == Output.JSON:
        show_json(answer)
    else:
        show(plan_answer(job, answer, local_now()))
    if not answer.feasible:
        raise typer.Exit(2)


def cancel(job: JobArgument, output: OutputOption = Output.TABLE) -> None:
    """Stop a job for good, or take it out of the queue."""
    _ask(job, "cancel", output)


def pause(job: JobArgument, output: OutputOption = Output.TABLE) -> None:
    """Hold a running job; it keeps its place."""
    _ask(job, "pause", output)


def resume(job: JobArgument, output: OutputOption = Output.TABLE) -> None:
    """Let a paused job go on; one that is suspended goes on by itself."""
    _ask(job, "resume", output)


def _ask(job: str, what: str, output: Output) -> None:
    with session.connect() as client:
        found = session.job_id(client, job)
        view = {"cancel": client.jobs.cancel, "pause": client.jobs.pause, "resume": client.jobs.resume}[what](found)
    if output == Output.JSON:
        show_json(view)
    elif what == "cancel" and view.state in (JobState.SUCCEEDED, JobState.FAILED):
        show(Text(f"nothing to cancel: {view.name} ({view.id}) has {view.state}"))
    else:
        show(Text(f"{what} requested for {view.name} ({view.id}), now {view.state}"))


def logs(
    job: JobArgument,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="one task; all if left out")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on until the job is over")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a job's workers printed."""
    with session.connect() as client:
        screen = console()
        for line in client.jobs.logs(session.job_id(client, job), task, follow=follow):
            source, text = (task, line) if task else _split(line)
            if output == Output.JSON:
                show_json_line({"task": source, "line": text})
            elif task or source is None:
                typer.echo(line)
            else:
                style = TASK_STYLES[sum(source.encode()) % len(TASK_STYLES)]
                screen.print(Text.assemble((source, style), (" | ", "dim"), text), soft_wrap=True)


def _split(line: str) -> tuple[str | None, str]:
    """Task and line of ``worker-0 | line``."""
    source, mark, text = line.partition(" | ")
    return (source, text) if mark else (None, line)


def describe_job(job: JobArgument, output: OutputOption = Output.TABLE) -> None:
    """Show all about a job: workers, flows, plan."""
    with session.connect() as client:
        view = client.jobs.get(session.job_id(client, job))
        committed = _plan_or_none(client, view.id)
    if output == Output.JSON:
        data = view.model_dump(mode="json")
        show_json(data | {"plan": committed.model_dump(mode="json") if committed is not None else None})
        return
    now = local_now()
    parts: list[RenderableType] = [job_live(view, now), Text(), job_facts(view, now)]
    if committed is not None:
        parts += [Text(), Text("plan", style="bold"), committed_plan(committed, since(committed.committed_at, now))]
    show(Group(*parts))


def _plan_or_none(client: Client, job: str) -> PlanView | None:
    try:
        return client.jobs.plan(job)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
