"""A job as it runs, drawn from its view alone: how far each worker is, and what its flows get."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ces_client.view.facts import fact_grid
from ces_client.view.plan import flow_table, plain_table, unenforced_note
from ces_client.view.standing import reason_text, score_text, waiting_text
from ces_client.view.words import DASH, since, span, state_text
from ces_common.messages.api import JobView, TaskView
from ces_common.states import JOB_OVER, JOB_WAITS, AllocationState, JobState

BAR_WIDTH = 32


@dataclass(frozen=True)
class TaskProgress:
    """What a worker's last line of progress says, as far as it says it. ``accuracy`` is a fraction."""

    round: int | None = None
    rounds: int | None = None
    loss: float | None = None
    accuracy: float | None = None


def task_progress(line: dict[str, Any] | None) -> TaskProgress:
    """Reads ``{"progress": {...}}``, a final ``{"result": {...}}``, or the fields alone. A result counts the rounds
    that were done and names no current one."""
    content: Any = line or {}
    content = content.get("result") or content.get("progress", content)
    if not isinstance(content, dict):
        return TaskProgress()
    rounds = _number(content.get("rounds"))
    done = _number(content.get("round", content.get("rounds")))
    return TaskProgress(
        None if done is None else int(done),
        None if rounds is None else int(rounds),
        _number(content.get("loss")),
        _number(content.get("accuracy")),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def job_live(view: JobView, now: datetime) -> RenderableType:
    """The whole picture: state, workers, plan."""
    parts: list[RenderableType] = [job_line(view, now)]
    waits = view.state in JOB_WAITS and bool(view.waiting or view.standing)
    if view.reason and view.state != JobState.SUCCEEDED and not (waits and view.state == JobState.QUEUED):
        parts.append(Text(view.reason, style="yellow"))
    if waits:
        parts.append(waiting_text(view.waiting, view.standing, now))
    if not any(task.node for task in view.placement):
        asked = f"{view.tasks} task{'' if view.tasks == 1 else 's'}, {len(view.flows)} flows, not placed yet"
        return Group(*parts, Text(asked, style="dim"))
    parts += [Text(), worker_table(view)]
    if view.flows:
        parts += [Text(), plan_table(view)]
        note = unenforced_note(view.flows)
        if note is not None:
            parts.append(note)
    return Group(*parts)


def job_line(view: JobView, now: datetime) -> Text:
    """``digits-ring 01J... running 1m05s, attempt 2, 1 restart``."""
    line = Text.from_markup(f"[bold]{escape(view.name)}[/] [dim]{escape(view.id)}[/]  ")
    line.append_text(state_text(view.state))
    end = view.finished_at if view.state in JOB_OVER else now
    start = view.started_at or view.submitted_at
    if end is not None:
        line.append(f"  {span((end - start).total_seconds())}")
    if view.attempt > 1:
        line.append(f"  attempt {view.attempt}")
    if view.restarts:
        line.append(f"  {view.restarts} restart{'s' if view.restarts > 1 else ''}", style="yellow")
    return line


def worker_table(view: JobView) -> Table:
    """A progress bar for each worker, with loss and accuracy."""
    table = plain_table("WORKER", "NODE", "STATE", "PROGRESS", "ROUND", "LOSS", "ACCURACY")
    for column in table.columns[4:]:
        column.justify = "right"
    for task in view.placement:
        progress = task_progress(task.progress)
        table.add_row(
            task.name,
            task.node or DASH,
            _task_state(task),
            _bar(task, progress),
            DASH if progress.round is None else f"{progress.round}/{progress.rounds or '?'}",
            DASH if progress.loss is None else f"{progress.loss:.4f}",
            DASH if progress.accuracy is None else f"{progress.accuracy:.1%}",
        )
    return table


def plan_table(view: JobView) -> Table:
    """Task, node, flow, path, asked, given, measured."""
    return flow_table({task.name: task.node for task in view.placement}, view.flows)


def _bar(task: TaskView, progress: TaskProgress) -> ProgressBar:
    if task.state == AllocationState.SUCCEEDED:
        return ProgressBar(total=1, completed=1, width=BAR_WIDTH)
    return ProgressBar(total=max(progress.rounds or 1, 1), completed=progress.round or 0, width=BAR_WIDTH)


def _task_state(task: TaskView) -> Text:
    text = state_text(task.state)
    if task.exit_code:
        text.append(f" (exit {task.exit_code})")
    return text


def job_news(before: JobView | None, view: JobView) -> list[str]:
    """What has changed from one view to the next, in plain lines for logs and pipes."""
    lines = []
    if before is None or (before.state, before.attempt) != (view.state, view.attempt):
        told = f": {view.reason}" if view.reason else ""
        where = ""
        if view.state in (JobState.PLANNED, JobState.RUNNING):
            where = " (" + ", ".join(f"{task.name} on {task.node}" for task in view.placement) + ")"
        lines.append(f"{view.name} {view.state}{told}{where}")
    if view.waiting is not None and (before is None or before.waiting != view.waiting):
        lines.append(f"{view.name} waits: {reason_text(view.waiting).plain}")
    if before is not None and before.restarts != view.restarts:
        lines.append(f"{view.name} restart {view.restarts}")
    known = {task.name: task.state for task in before.placement} if before is not None else {}
    for task in view.placement:
        if task.name in known and known[task.name] != task.state and task.state == AllocationState.FAILED:
            code = "" if task.exit_code is None else f" with exit code {task.exit_code}"
            told = f": {task.reason}" if task.reason else ""
            lines.append(f"{task.name} on {task.node} failed{code}{told}")
    return lines


def job_facts(view: JobView, now: datetime) -> Table:
    """Name and value of what the tables below do not show."""
    facts = [("tenant", view.tenant), ("priority", str(view.priority))]
    if view.expected_s is not None:
        facts.append(("says it runs", span(view.expected_s)))
    if view.standing is not None:
        facts.append(("in the queue", f"number {view.standing.position}, score {score_text(view.standing.score)}"))
        if view.waiting is not None and view.waiting.text not in waiting_text(view.waiting, view.standing, now).plain:
            facts.append(("has no place", view.waiting.text))
    facts.append(("submitted", f"{since(view.submitted_at, now)} ago"))
    if view.started_at is not None:
        facts.append(("started", f"{since(view.started_at, now)} ago"))
    if view.finished_at is not None:
        facts.append(("finished", f"{since(view.finished_at, now)} ago"))
    facts.append(("when cut off", view.disconnect))
    facts.append(("when preempted", view.preemption))
    facts += [
        ("command", command) for command in sorted({" ".join(task.command) for task in view.placement}) if command
    ]
    return fact_grid(facts)
