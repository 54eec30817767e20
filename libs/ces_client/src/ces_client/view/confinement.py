"""What keeps workers apart, in a line."""

from __future__ import annotations

from collections.abc import Sequence

from ces_common.messages.api import TaskView
from ces_common.messages.confinement import Confinement

_SHOWN = 3  # tasks that are named; the others are counted


def confinement_text(runtime: str, network: str, told: Confinement | None) -> str:
    """``process: user of its own, calls filtered, root read-only, disk measured, network by tc``."""
    if told is None:
        return f"{runtime}: its agent has not told yet"
    place = "container of its own" if runtime == "docker" else "user of its own"
    parts = (
        place if told.user == "own" else "user shared by all",
        "calls filtered" if told.filter else "calls not filtered",
        f"root {told.root}",
        f"disk {told.disk}",
        "network by tc" if network == "tc" else "network not confined",
    )
    return f"{runtime}: {', '.join(parts)}"


def confined_tasks(tasks: Sequence[TaskView]) -> list[str]:
    """The same of placed tasks, those together of which the same holds."""
    alike: dict[str, list[str]] = {}
    for task in tasks:
        if task.runtime is not None and task.network is not None:
            alike.setdefault(confinement_text(task.runtime, task.network, task.confinement), []).append(task.name)
    return [f"{_names(names)} in {text}" if len(alike) > 1 else text for text, names in alike.items()]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
