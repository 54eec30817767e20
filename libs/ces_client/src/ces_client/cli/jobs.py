"""Commands about one job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ces_client.cli import completion, session
from ces_client.cli.attach import attach, logs_of_failed
from ces_client.cli.live_view import WatchOption, watch_changes
from ces_client.cli.output import (
    Output,
    OutputOption,
    console,
    local_now,
    say,
    say_raw,
    show,
    show_json,
    show_json_line,
    tell,
)
from ces_client.client import Client
from ces_client.errors import ApiError, CesError
from ces_client.files import load_job
from ces_client.view.flows import job_flows
from ces_client.view.formats import since
from ces_client.view.job import job_facts, job_live, last_lines
from ces_client.view.moves import move_text
from ces_client.view.plan import committed_plan, plan_answer
from ces_client.view.queue_status import waiting_text
from ces_client.view.requests import measured_requests
from ces_client.view.trace import waterfall
from ces_common.messages.api import JobFlowsView, JobView, PlanView
from ces_common.states import JOB_OVER, JobState

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="a job's id, or a name: the latest job that bears it", autocompletion=completion.jobs
    ),
]
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="a job file, YAML or JSON")]
DECISION_S = 2.0  # for which the scheduler's first word on a new job is awaited
LOOK_S = 0.1
DONE = {"cancel": JobState.CANCELLED, "pause": JobState.PAUSED, "resume": JobState.RUNNING}
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
    tell(view, _first_word(view), output)


def _decided(client: Client, view: JobView) -> JobView:
    """The job as it is once the scheduler has looked at it, or after a moment all the same."""
    until = time.monotonic() + DECISION_S
    while view.state is JobState.QUEUED and not (view.waiting or view.queue_status) and time.monotonic() < until:
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
    if view.waiting or view.queue_status:
        return Text("it ").append_text(waiting_text(view.waiting, view.queue_status, local_now()))
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
    tell(answer, plan_answer(job, answer, local_now()), output)
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


def move(
    job: JobArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="the task's name, as `ces describe job` shows it")],
    to: Annotated[
        str, typer.Option("--to", metavar="NODE", help="where it is to run", autocompletion=completion.nodes)
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Move one task of a running job to another node; the job's other tasks run on."""
    with session.connect() as client:
        view = client.jobs.move(session.job_id(client, job), task, to=to)
    moved = "" if view.move is None else move_text(view.move)
    tell(view, Text(view.remark or f"{moved}; `ces describe job {view.id}` shows how it goes"), output)


def _ask(job: str, what: str, output: Output) -> None:
    with session.connect() as client:
        found = session.job_id(client, job)
        before = client.jobs.get(found).state
        view = {"cancel": client.jobs.cancel, "pause": client.jobs.pause, "resume": client.jobs.resume}[what](found)
    if output == Output.JSON:
        show_json(view)
    elif view.remark is not None:
        show(Text(view.remark))
    elif what == "cancel" and view.state in (JobState.SUCCEEDED, JobState.FAILED):
        show(Text(f"nothing to cancel: {view.name} ({view.id}) has {view.state}"))
    elif before == DONE[what]:
        show(Text(f"nothing to do: {view.name} ({view.id}) is {before} already"))
    else:
        show(Text(f"{what} requested for {view.name} ({view.id}), now {view.state}"))


def logs(
    job: JobArgument,
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="one task; all if left out", autocompletion=completion.tasks)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on until the job is over")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, help="only the last N lines of each task; all if left out")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="with colours and all else that steers a terminal; not on a terminal")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a job's workers printed."""
    with session.connect() as client:
        screen = console()
        for line in client.jobs.logs(session.job_id(client, job), task, follow=follow, tail=tail):
            source, text = (task, line) if task else _split(line)
            if output == Output.JSON:
                show_json_line({"task": source, "line": text})
            elif raw:
                say_raw(line)
            elif task or source is None:
                say(line)
            else:
                style = TASK_STYLES[sum(source.encode()) % len(TASK_STYLES)]
                screen.print(Text.assemble((source, style), (" | ", "dim")), end="", soft_wrap=True)
                say(text)


def _split(line: str) -> tuple[str | None, str]:
    """Task and line of ``worker-0 | line``."""
    source, mark, text = line.partition(" | ")
    return (source, text) if mark else (None, line)


def describe_job(
    job: JobArgument,
    trace: Annotated[bool, typer.Option("--trace", help="where its time went, from submission until it ran")] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="with --trace: of which attempt; the present one if left out")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show all about a job: workers, flows, plan. Or with --trace: where its time went."""
    if attempt is not None and not trace:
        raise typer.BadParameter("say --trace with it", param_hint="--attempt")
    if trace:
        with session.connect() as client:
            told = client.jobs.trace(session.job_id(client, job), attempt=attempt)
        tell(told, waterfall(told), output)
        return
    with session.connect() as client:
        view = client.jobs.get(session.job_id(client, job))
        committed = _plan_or_none(client, view.id)
        logs = logs_of_failed(client, view) if output == Output.TABLE else {}
    if output == Output.JSON:
        data = view.model_dump(mode="json")
        show_json(data | {"plan": committed.model_dump(mode="json") if committed is not None else None})
        return
    now = local_now()
    parts: list[RenderableType] = [job_live(view, now), Text(), job_facts(view, now)]
    if committed is not None:
        age, measured = since(committed.committed_at, now), measured_requests(view.placement)
        parts += [Text(), Text("plan", style="bold"), committed_plan(committed, age, measured)]
    if logs:
        parts += [Text(), last_lines(view, logs)]
    show(Group(*parts))


def _plan_or_none(client: Client, job: str) -> PlanView | None:
    try:
        return client.jobs.plan(job)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def flows(
    job: JobArgument,
    hops: Annotated[bool, typer.Option("--hops", help="a line for each link of a flow's path")] = False,
    watch: WatchOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what a job's flows asked for, were given and carry, now and over the last minute."""

    def picture(view: JobFlowsView) -> RenderableType:
        return job_flows(view, hops=hops)

    with session.connect() as client:
        found = session.job_id(client, job)
        view = client.jobs.flows(found)
        if watch:
            watch_changes(lambda: client.jobs.flows(found), view, picture, output, lambda view: view.state in JOB_OVER)
        elif output == Output.JSON:
            show_json(view)
        else:
            show(picture(view))
