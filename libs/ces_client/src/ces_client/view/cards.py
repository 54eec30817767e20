"""GPU cards, of a node and of tasks, in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ces_common.messages.api import TaskView
from ces_common.messages.cards import CardView, Sharing
from ces_common.quantities import show_memory
from ces_common.resources import WHOLE

KEPT: Mapping[Sharing | None, str] = {
    "counted": "counted: the program is told, and nothing keeps it to that",
    "co-operative": "co-operative: the node has MPS or HAMi-core, which keeps a program to it that does not evade it",
}


def card_text(card: CardView) -> str:
    """``GPU-1 (Tesla T4, 16 GiB): 600m held, with 9.6 GiB``."""
    known = [card.model] if card.model else []
    known += [show_memory(card.memory)] if card.memory else []
    text = f"{card.id} ({', '.join(known)})" if known else card.id
    if not card.allocated:
        return f"{text}: free"
    if card.allocated >= WHOLE:
        return f"{text}: held"
    return f"{text}: {card.allocated}m held, with {show_memory(card.memory_allocated)}"


def task_cards(tasks: Sequence[TaskView]) -> list[str]:
    """``w-0: GPU-1, GPU-2``, or ``w-0: 500m of GPU-1 (counted: ...)``, of placed tasks that have some."""
    return [_of_task(task) for task in tasks if task.cards]


def _of_task(task: TaskView) -> str:
    which = ", ".join(task.cards)
    if not task.gpu_share:
        return f"{task.name}: {which}"
    return f"{task.name}: {task.gpu_share}m of {which} ({KEPT.get(task.gpu_sharing, KEPT['counted'])})"
