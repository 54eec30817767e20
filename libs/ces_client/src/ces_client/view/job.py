"""A job as it runs, drawn from its view alone: how far each worker is, and what its flows get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ces_client.view.cards import task_cards
from ces_client.view.confinement import confined_tasks
from ces_client.view.deadline import deadline_text, policy_text
from ces_client.view.energy import energy_text
from ces_client.view.formats import DASH, moment, number, since, span, state_text
from ces_client.view.moves import look_text, move_text, place_text
from ces_client.view.plain import plain
from ces_client.view.plan import flow_table, unenforced_note
from ces_client.view.profile import warning_text
from ces_client.view.queue_status import reason_text, score_text, waiting_text
from ces_client.view.requests import REPORTED
from ces_client.view.speeds import speed_facts
from ces_client.view.tables import fact_list, plain_table
from ces_common.elastic import CpuRange, Elastic
from ces_common.exit_codes import signal_name
from ces_common.messages.api import JobView, TaskView
from ces_common.quantities import format_cpu
from ces_common.states import JOB_OVER, JOB_WAITS, AllocationState, JobState

BAR_WIDTH = 32
KNOWN = ("round", "rounds", "loss", "accuracy", "rank", "world_size", REPORTED)
"""Keys of progress that stand elsewhere: the last ones in the worker's name, the number of rows, and below the plan."""
MOST_KEYS = 4  # of a worker's own that are shown
MOST_SHOWN = 20  # characters of a value


@dataclass(frozen=True)
class TaskProgress:
    """What a worker's last line of progress says; ``accuracy`` is a fraction, ``more`` what it says beyond that."""

    round: int | None = None
    rounds: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def task_progress(line: dict[str, Any] | None) -> TaskProgress:
    """Reads ``{"progress": {...}}``, a final ``{"result": {...}}``, or the fields alone. A result counts the rounds
    that were done and names no current one."""
    content: Any = line or {}
    content = content.get("result") or content.get("progress", content)
    if not isinstance(content, dict):
        return TaskProgress()
    rounds = number(content.get("rounds"))
    done = number(content.get("round", content.get("rounds")))
    known = (*KNOWN, "step") if content.get("step") == done else KNOWN
    return TaskProgress(
        None if done is None else int(done),
        None if rounds is None else int(rounds),
        number(content.get("loss")),
        number(content.get("accuracy")),
        {str(key): value for key, value in content.items() if key not in known},
    )


def job_live(view: JobView, now: datetime, *, reasons: bool = True) -> RenderableType:
    """The whole picture: state, workers, plan. ``reasons``: with the sentences that say why it waits or failed."""
    parts: list[RenderableType] = [job_line(view, now)]
    waits = reasons and view.state in JOB_WAITS and bool(view.waiting or view.queue_status)
    if reasons and view.reason and view.state != JobState.SUCCEEDED and not (waits and view.state == JobState.QUEUED):
        parts.append(Text(view.reason, style="yellow"))
    if waits:
        parts.append(waiting_text(view.waiting, view.queue_status, now))
    if view.parts:
        return Group(*parts, Text(_split(view, now)))
    if view.region is not None:
        return Group(*parts, Text(_elsewhere(view, now)))
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


def _elsewhere(view: JobView, now: datetime) -> str:
    said = "is" if view.state is JobState.ELSEWHERE else "was"
    text = f"{view.tasks} task{'' if view.tasks == 1 else 's'}, whose place {said} in region {view.region}"
    if view.remote_state:
        text += f", which says: {view.remote_state}"
    if view.unknown_since is not None:
        text += f"; unknown since {moment(view.unknown_since, now)}: that region does not answer"
    return text


def _split(view: JobView, now: datetime) -> str:
    lines = [f"{', '.join(part.tasks)} in region {part.region}: {part.state or 'held'}" for part in view.parts]
    if view.unknown_since is not None:
        lines.append(f"unknown since {moment(view.unknown_since, now)}: one of these regions does not answer")
    return "\n".join(lines)


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
    """A line for each worker; of its progress, the columns that any worker fills."""
    progresses = [task_progress(task.progress) for task in view.placement]
    bar = ("PROGRESS", "ROUND") if any(progress.round is not None for progress in progresses) else ()
    loss = ("LOSS",) if any(progress.loss is not None for progress in progresses) else ()
    accuracy = ("ACCURACY",) if any(progress.accuracy is not None for progress in progresses) else ()
    more = ("MORE",) if any(progress.more for progress in progresses) else ()
    columns = ("WORKER", "NODE", "STATE", *bar, *loss, *accuracy, *more)
    numbers = ("ROUND", "LOSS", "ACCURACY")
    table = plain_table(*columns, right=numbers, wrapped=("PROGRESS", *more), optional=("PROGRESS", "LOSS", "NODE"))
    for task, progress in zip(view.placement, progresses, strict=True):
        cells: dict[str, RenderableType] = {
            "PROGRESS": _bar(task, progress),
            "ROUND": DASH if progress.round is None else f"{progress.round}/{progress.rounds or '?'}",
            "LOSS": DASH if progress.loss is None else f"{progress.loss:.4f}",
            "ACCURACY": DASH if progress.accuracy is None else f"{progress.accuracy:.1%}",
            "MORE": Text(_own_keys(progress.more), no_wrap=True, overflow="ellipsis"),
        }
        shown = [cells[column] for column in columns[3:]]
        table.add_row(task.name, task.node or DASH, _task_state(task), *shown)
    return table


def plan_table(view: JobView) -> Table:
    """Task, node, flow, path, asked, given, measured."""
    return flow_table({task.name: task.node for task in view.placement}, view.flows)


def _bar(task: TaskView, progress: TaskProgress) -> ProgressBar:
    if task.state == AllocationState.SUCCEEDED:
        return ProgressBar(total=1, completed=1, width=BAR_WIDTH)
    return ProgressBar(total=max(progress.rounds or 1, 1), completed=progress.round or 0, width=BAR_WIDTH)


def _own_keys(more: Mapping[str, Any]) -> str:
    """``step 12, throughput 3.5``: the keys of progress that are the worker's own."""
    shown = [f"{key} {_value(value)}" for key, value in list(more.items())[:MOST_KEYS]]
    return ", ".join(shown) + (", ..." if len(more) > MOST_KEYS else "")


def _value(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _task_state(task: TaskView) -> Text:
    text = state_text(task.state)
    if task.exit_code:
        text.append(f" ({signal_name(task.exit_code) or f'exit {task.exit_code}'})")
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
        who = f"{task.name} on {task.node} "
        if (view.reason or "").startswith(who):
            continue  # said above
        if task.name in known and known[task.name] != task.state and task.state == AllocationState.FAILED:
            told = f": {task.reason}" if task.reason else ""
            lines.append(f"{who}{_end_of(task)}{told}")
    return lines


def _end_of(task: TaskView) -> str:
    if task.exit_code is None:
        return "failed"
    signal = signal_name(task.exit_code)
    return f"was ended by {signal}" if signal else f"failed with exit code {task.exit_code}"


def last_lines(view: JobView, logs: Mapping[str, Sequence[str]]) -> RenderableType:
    """The end of the logs of workers that failed (task -> lines), and where to read the rest."""
    parts = []
    for task, lines in logs.items():
        parts += [Text(plain(f"{task} | {line}"), style="dim") for line in lines]  # Text alone drops what steers
        parts.append(Text(f"the whole log: ces logs {view.id} {task}"))
    return Group(*parts)


def _sizes(elastic: Elastic) -> str:
    if elastic.workers is None:
        return ", ".join(map(str, elastic.sizes))
    return f"{elastic.workers.min} to {elastic.workers.max}"


def _cpu(view: JobView, elastic: Elastic, limits: CpuRange) -> str:
    """``800m for each worker, of 250m to 2``."""
    group = [task for task in view.placement if elastic.includes(task.name)]
    now = sorted({task.cpu if task.cpu_desired is None else task.cpu_desired for task in group})
    told = ", ".join(map(format_cpu, now))
    return f"{told} for each {elastic.group}, of {format_cpu(limits.min)} to {format_cpu(limits.max)}"


def job_facts(view: JobView, now: datetime) -> RenderableType:
    """Names and values of what the tables do not show."""
    facts = [("tenant", view.tenant), ("priority", str(view.priority))]
    if view.elastic is not None:
        facts.append(("size", f"{view.size} {view.elastic.group}, of {_sizes(view.elastic)}"))
        if view.elastic.cpu is not None:
            facts.append(("CPU", _cpu(view, view.elastic, view.elastic.cpu)))
        facts += speed_facts(view, view.elastic.speed)
    if view.deadline_at is not None:
        facts.append(("deadline", f"{deadline_text(view, now)} ({policy_text(view)})"))
    if view.expected_s is not None:
        facts.append(("says it runs", span(view.expected_s)))
    if view.queue_status is not None:
        facts.append(
            ("in the queue", f"number {view.queue_status.position}, score {score_text(view.queue_status.score)}")
        )
        if (
            view.waiting is not None
            and view.waiting.text not in waiting_text(view.waiting, view.queue_status, now).plain
        ):
            facts.append(("has no place", view.waiting.text))
    facts += [(f"region {region}", why) for region, why in sorted(view.not_taken.items())]
    if view.move is not None:
        facts.append(("move", move_text(view.move)))
    if view.last_look is not None:
        facts.append(("looked at", look_text(view.last_look, now)))
    facts += [(f"user {user.name}", place_text(user.at)) for user in view.users]
    if view.remark is not None:
        facts.append(("remark", view.remark))
    facts.append(("submitted", f"{since(view.submitted_at, now)} ago"))
    if view.started_at is not None:
        facts.append(("started", f"{since(view.started_at, now)} ago"))
    if view.finished_at is not None:
        facts.append(("finished", f"{since(view.finished_at, now)} ago"))
    if view.started_at is not None:
        facts.append(("energy", energy_text(view.energy)))
    if (warning := warning_text(view.work_error)) is not None:
        facts.append(("work", warning))
    facts.append(("when cut off", view.disconnect))
    facts.append(("when preempted", view.preemption))
    facts += [("confined", text) for text in confined_tasks(view.placement)]
    facts += [("GPU", text) for text in task_cards(view.placement)]
    facts += [
        ("command", command) for command in sorted({" ".join(task.command) for task in view.placement}) if command
    ]
    return fact_list(facts)
