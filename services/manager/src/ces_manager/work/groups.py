"""Tasks of one group on one node, taken together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ces_common.messages.work import SeenWork, Span
from ces_manager.work_meter import Pace


@dataclass(frozen=True, slots=True)
class TaskPace:
    """``cores``: that the task may use."""

    task: str
    node: str
    cores: float
    pace: Pace


def group_of_task(task: str) -> str:
    """Tasks are named after their group, with a number."""
    return task.rpartition("-")[0] or task


def seen_work(paces: Iterable[TaskPace]) -> dict[str, list[SeenWork]]:
    """Group -> what its tasks took, node by node, in order of their names."""
    by: dict[tuple[str, str], list[TaskPace]] = {}
    for each in paces:
        by.setdefault((group_of_task(each.task), each.node), []).append(each)
    found: dict[str, list[SeenWork]] = {}
    for (group, node), some in sorted(by.items()):
        found.setdefault(group, []).append(_together(node, some))
    return found


def _together(node: str, some: Sequence[TaskPace]) -> SeenWork:
    """Means by steps, and the bounds of all."""
    steps = sum(each.pace.steps for each in some)
    ms = sum(each.pace.cpu.ms * each.pace.steps for each in some) / steps
    low, high = min(each.pace.cpu.low for each in some), max(each.pace.cpu.high for each in some)
    return SeenWork(
        node=node,
        tasks=len(some),
        steps=steps,
        cpu=Span(ms=ms, low=min(low, ms), high=max(high, ms)),
        step=sum(each.pace.step * each.pace.steps for each in some) / steps,
        cores=max(each.cores for each in some),
    )
