"""A waiting job in sentences: what it waits for, which jobs hold that, and when it is expected to start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.text import Text

from ces_client.view.formats import DASH, moment
from ces_common.messages.api import PlanForecast
from ces_common.messages.events import JobName, Lack, QueueStatusView, Reason, Score, TooFewNodes
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_common.shares import HEADROOM

SHOWN = 3  # jobs that are named; the others are counted
PARTS = ("fit", "priority", "waiting", "share")
HOPELESS = "; no job's end can change that, only other nodes or links, or another job"


def reason_text(reason: Reason) -> Text:
    """Why a job has no place; the reason's own sentence holds the numbers."""
    text = Text(reason.text)
    if reason.forever:
        text.append(reservable_share(reason)).append(HOPELESS, style="yellow")
    return text


def reservable_share(reason: Reason) -> str:
    """The rule by which a flow finds no place on a link of its own size; empty where bandwidth is not the reason."""
    if not reason.code.startswith("bandwidth-"):
        return ""
    return f" (plans may reserve {100 * (1 - HEADROOM):.0f} % of a link)"


def waiting_text(reason: Reason | None, queue_status: QueueStatusView | None, now: datetime) -> Text:
    """``waits for 12 Mbit/s on n3 -> n5, held by job b until about 14:02``, and whether it has a reservation.
    Times of day are in the zone of ``now``."""
    if reason is not None and (queue_status is None or reason.forever):
        return Text("waits: ").append_text(reason_text(reason))
    text = _waits(reason)
    if queue_status is None:
        return text
    if queue_status.holders:
        text.append(f", held by {job_list(queue_status.holders)}")
    if not queue_status.reserved and queue_status.start_at is not None and queue_status.start_at > now:
        text.append(f" until about {moment(queue_status.start_at, now)}")
    if queue_status.reserved:
        text.append(". It has a reservation")
        text.append(
            "" if queue_status.start_at is None else f": it starts no later than {moment(queue_status.start_at, now)}"
        )
    elif queue_status.overdue:
        text.append(". It is overdue: the oldest overdue job goes first")
    return text


def start_text(queue_status: QueueStatusView | None, now: datetime) -> str:
    """``about 14:02``; a dash if unknown."""
    if queue_status is None or queue_status.start_at is None:
        return DASH
    if queue_status.reserved:
        return f"no later than {moment(queue_status.start_at, now)}"
    return f"about {moment(queue_status.start_at, now)}" if queue_status.start_at > now else DASH


def dominant_part(score: Score) -> str:
    """The part of a score that counts most, for or against: ``fit -2.13``."""
    name = max(PARTS, key=lambda part: abs(getattr(score, part)))
    return f"{name} {getattr(score, name):+.2f}"


def score_text(score: Score) -> str:
    """``1.25 (fit +2.00, priority -0.50, waiting +0.00, share -0.25; scarce: cpu)``."""
    parts = ", ".join(f"{part} {getattr(score, part):+.2f}" for part in PARTS)
    return f"{score.total:.2f} ({parts}; scarce: {score.scarce})"


def job_list(jobs: Sequence[JobName]) -> str:
    """``job b``, ``jobs a and b``, ``jobs a, b, c and 2 more``."""
    return f"{'job' if len(jobs) == 1 else 'jobs'} {job_names(jobs)}"


def job_names(jobs: Sequence[JobName]) -> str:
    """The same without the word."""
    names = [job.name for job in jobs]
    if len(names) > SHOWN:
        names[SHOWN:] = [f"{len(names) - SHOWN} more"]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def forecast_text(answer: PlanForecast, now: datetime) -> Text | None:
    """When a job without a place now would start; None if never, or if the scheduler does not say."""
    if answer.position is None or (answer.reason is not None and answer.reason.forever):
        return None
    text = Text(f"it would be number {answer.position} in the queue")
    if answer.reason is not None and answer.reason.code == "preempting":
        return text.append(" and start as soon as they have")
    if answer.start_at is None:
        return text.append("; its start cannot be predicted")
    if answer.start_at - now < timedelta(seconds=1):
        return text.append(" and start as soon as it is its turn and there is free capacity")
    text.append(f" and start at about {moment(answer.start_at, now)}")
    return text.append(f", after {job_list(answer.holders)}" if answer.holders else "")


def _waits(reason: Reason | None) -> Text:
    if reason is None:
        return Text("waits for its turn: others come first")
    wanted = _wanted(reason)
    return Text(f"waits: {reason.text}" if wanted is None else f"waits for {wanted}")


def _wanted(reason: Reason) -> str | None:
    """What is missing, where the reason is about nodes with so much, or about one amount of one resource."""
    if reason.nodes is not None:
        return _wanted_nodes(reason.nodes)
    if reason.resource is None or reason.needed is None:
        return None
    amount = amount_text(reason.resource, reason.needed)
    if reason.code == "bandwidth-per-flow":
        return f"{amount} on {reason.where}" if reason.where else amount
    if reason.code.endswith("-per-node"):
        return f"{amount} on one node"
    if reason.code.endswith("-total"):
        return amount
    return f"{amount} within the quota of tenant {reason.where}" if reason.code == "quota" else None


def _wanted_nodes(nodes: TooFewNodes) -> str:
    amounts = " and ".join(amount_text(resource, value) for resource, value in nodes.each.items())
    if nodes.apart:
        found = f"{nodes.nodes or 'none'} {'have' if nodes.nodes > 1 else 'has'} that"
        return f"{nodes.needed} {'node' if nodes.needed == 1 else 'nodes'} with {amounts} free ({found})"
    times = {0: "nowhere", 1: "once"}.get(nodes.available, f"{nodes.available} times")
    if nodes.needed == 1:
        return f"{amounts} on one node (free {times})"
    return f"{nodes.needed} times {amounts}, each on one node (free {times})"


def lack_text(lack: Lack) -> str:
    """``2.5 cores asked, 0.9 cores free``."""
    return f"{amount_text(lack.resource, lack.needed)} asked, {amount_text(lack.resource, lack.available)} free"


def amount_text(resource: str, value: float) -> str:
    shown = {"cpu": show_cpu, "memory": show_memory, "bandwidth": show_bandwidth}.get(resource)
    return shown(value) if shown else f"{value:g} {resource.upper()}{'' if value == 1 else 's'}"
