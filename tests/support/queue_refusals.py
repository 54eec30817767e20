"""Jobs that the scheduler refuses, with their queue status, and the pages of the queue that tell of them."""

from __future__ import annotations

from manager_world import World

from ces_common.messages.api import QueuePage
from ces_common.messages.events import PlanRefused, QueueStatus, Reason, Score
from ces_manager.plans import refusal
from ces_manager.queue.live import QueueReport
from ces_manager.queue.page import queue_page

NARROW = Reason(code="bandwidth-per-flow", text="too narrow", resource="bandwidth", needed=12e6, where="a -> b")
SCORE = Score(fit=1, priority=0, waiting=0.25, share=0, total=1.25, scarce="cpu")


def queue_status(job: str, position: int = 1, **more: object) -> QueueStatus:
    return QueueStatus.model_validate({"job": job, "position": position, "score": SCORE, **more})


def refuse(world: World, told: QueueStatus, reason: Reason = NARROW) -> None:
    refused = PlanRefused(
        job=told.job, attempt=world.job(told.job).attempt, version=1, reason=reason, queue_status=told
    )
    world.write(lambda tx: refusal.note_refusal(tx, refused))


def page(world: World, told: QueueReport, after: int = 0, limit: int = 100) -> QueuePage:
    with world.uow.read() as tx:
        return queue_page(tx, told, after=after, limit=limit)
