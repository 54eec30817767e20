"""What steps of a job take, here and on other nodes, as tables."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH
from ces_client.view.tables import plain_table
from ces_common.messages.work import POORLY_KNOWN, GroupProfile, JobProfile, Span

REFERENCE_UNIT: Final = "ru"
REFERENCE_NOTE: Final = f"{REFERENCE_UNIT}: milliseconds of the reference core, if all of the work is of that class"


def ms_text(ms: float) -> str:
    """``0.42 ms``, ``12.3 ms``, ``4.1 s``."""
    return f"{ms / 1000:.3g} s" if ms >= 1000 else f"{ms:.3g} ms"


def span_text(span: Span | None) -> str:
    """``12.3 ms (11.9 ms to 14 ms)``."""
    return DASH if span is None else f"{ms_text(span.ms)} ({ms_text(span.low)} to {ms_text(span.high)})"


def error_text(error: float | None) -> str:
    return DASH if error is None else f"{error:.1%}"


def warning_text(error: float | None) -> str | None:
    """What is to be said of a job whose predictions were wrong so far; None where they were not."""
    if error is None or error <= POORLY_KNOWN:
        return None
    return f"what a step takes elsewhere is poorly known: predictions were wrong by {error:.0%} (ces profile)"


def profile_parts(view: JobProfile) -> RenderableType:
    parts: list[RenderableType] = [Text(view.name, style="bold")]
    for group in view.groups:
        parts += [Text(), *_group_parts(group)]
    return Group(*parts)


def _group_parts(group: GroupProfile) -> list[RenderableType]:
    ran = f", learned from {group.runs} run{'s' if group.runs > 1 else ''}" if group.runs else ""
    parts: list[RenderableType] = [Text(f"{group.group}{ran}")]
    if group.seen:
        parts.append(_seen(group))
    if group.classes:
        parts += [_classes(group), Text(REFERENCE_NOTE)]
    if group.predicted:
        parts.append(_predicted(group))
    best = min((each.error for each in group.classes.values() if each.error is not None), default=None)
    doubts = [warning] if (warning := warning_text(best)) is not None else []
    parts += [Text(each, style="yellow") for each in [*doubts, *group.doubts]]
    return parts


def _seen(group: GroupProfile) -> Table:
    numbers = ("TASKS", "STEPS", "CPU TIME OF A STEP", "TIME OF A STEP")
    table = plain_table("SEEN ON", *numbers, right=numbers, wrapped=())
    for each in group.seen:
        table.add_row(each.node, str(each.tasks), str(each.steps), span_text(each.cpu), ms_text(each.step))
    return table


def _classes(group: GroupProfile) -> Table:
    numbers = ("WORK OF A STEP", "ERROR SO FAR")
    table = plain_table("CLASS", *numbers, right=numbers, wrapped=())
    for kind, each in group.classes.items():
        table.add_row(kind, f"{each.work:.4g} {REFERENCE_UNIT}", error_text(each.error))
    return table


def _predicted(group: GroupProfile) -> Table:
    numbers = ("CPU TIME OF A STEP", "TIME OF A STEP")
    table = plain_table("PREDICTED FOR", *numbers, "BY", right=numbers, optional=("BY",))
    for each in group.predicted:
        table.add_row(each.node, span_text(each.cpu), span_text(each.step), ", ".join(each.classes))
    return table
