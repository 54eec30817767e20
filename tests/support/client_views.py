"""For tests of what the client shows: rendered lines, and samples of waiting jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.console import Console

from ces_common.messages.api import NodeView, QueueEntry
from ces_common.messages.events import JobName, QueueStatusView, Reason, Score

NOW = datetime(2026, 11, 22, 13, 50, tzinfo=UTC)
SOON = NOW + timedelta(minutes=12)
SCORE = Score(fit=-2.125, priority=0.5, waiting=0.25, share=0, total=-1.375, scarce="bandwidth")
NARROW = Reason(
    code="bandwidth-per-flow",
    text="flow a -> b needs at least 12 Mbit/s; the widest free path (n3 -> n5) has 4 Mbit/s",
    resource="bandwidth",
    needed=12e6,
    available=4e6,
    where="n3 -> n5",
)
NEVER = Reason(
    code="bandwidth-per-flow", text="flow a -> b needs 10 Mbit/s; the widest path has 4 [Mbit/s]", forever=True
)
ANNA, BERT = JobName(id="1", name="anna"), JobName(id="2", name="bert")


def lines(renderable: object, width: int = 100) -> list[str]:
    """What a terminal of this width shows."""
    screen = Console(width=width, force_terminal=False)
    with screen.capture() as captured:
        screen.print(renderable, crop=False)
    return [line.rstrip() for line in captured.get().splitlines()]


def wide(renderable: object) -> list[str]:
    return lines(renderable, 200)


def queue_status(**more) -> QueueStatusView:
    return QueueStatusView.model_validate({"job": "j", "position": 3, "score": SCORE, **more})


def entry(**more) -> QueueEntry:
    told = {"position": 3, "id": "j", "name": "digits", "tenant": "vision", "priority": 80}
    return QueueEntry.model_validate(told | {"submitted_at": NOW - timedelta(minutes=5)} | more)


def node(**more) -> NodeView:
    fields = {"name": "n0", "state": "ready", "cordoned": True, "cpu": 4000, "memory": 8 * 2**30, "gpu": 1}
    fields |= {"cpu_allocated": 1500, "memory_allocated": 2**29, "gpu_allocated": 0, "arch": "arm64"}
    fields |= {"runtime": "process", "network": "none", "host_address": "10.0.0.1", "subnet": "10.1.0.0/24"}
    return NodeView(**(fields | more))
