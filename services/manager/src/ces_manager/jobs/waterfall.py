"""Waterfalls of attempts, of spans or of events. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ces_common.messages.traces import SpanView
from ces_common.states import AllocationState, JobState

DEEPEST = 32  # levels; what lies deeper is shown at this one
ATTEMPT = "attempt"  # the first line of a waterfall of events
PHASES = {
    JobState.QUEUED: "queued",
    JobState.PLANNED: "network",
    JobState.PREPARING: "network",
    JobState.RESIZING: "network",
    JobState.STARTING: "workers",
}


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a job: it, or one of its allocations, has reached a state."""

    at: datetime
    state: JobState | AllocationState
    attempt: int
    allocation: str | None = None
    task: str = ""
    node: str | None = None
    incarnation: int = 1


def in_order(spans: Sequence[SpanView]) -> list[SpanView]:
    """Each under its parent, siblings by when they began, with their depths. A span whose parent nobody told stands at
    the top; so does one of a circle, which only a liar tells."""
    known = {span.id for span in spans}
    children: dict[str | None, list[SpanView]] = defaultdict(list)
    for span in sorted(spans, key=lambda each: (each.start_us, each.id)):
        children[span.parent if span.parent in known and span.parent != span.id else None].append(span)
    found: dict[str, SpanView] = {}
    pending = [(span, 0) for span in reversed(children[None])]
    circles = iter(sorted(spans, key=lambda each: (each.start_us, each.id)))
    while len(found) < len(known):
        if not pending:
            pending = [(next(span for span in circles if span.id not in found), 0)]
        span, depth = pending.pop()
        if span.id in found:
            continue
        found[span.id] = span.model_copy(update={"depth": min(depth, DEEPEST)})
        pending += [(child, depth + 1) for child in reversed(children[span.id])]
    return list(found.values())


def of_events(events: Iterable[Happened], attempt: int) -> tuple[datetime | None, list[SpanView]]:
    """When the attempt began, and its phases: queued, until its network is in place, until its workers run, and the
    start of each worker. A phase that goes on has no duration. Empty where no event of the attempt is kept."""
    mine = [event for event in events if event.attempt == attempt]
    began = next((event.at for event in mine if event.allocation is None), None)
    if began is None:
        return None, []
    rows = [_Row("0", None, 0, ATTEMPT, began)]
    phase: _Row | None = None
    starts: dict[tuple[str, int], _Row] = {}
    for event in mine:
        if event.allocation is None:
            name = PHASES.get(JobState(event.state))
            if phase is not None and (name is None or name != phase.name):
                phase.end = event.at
                phase = None
            if name is None:  # it runs, or its attempt is over
                rows[0].end = event.at
                break
            if phase is None:
                phase = _Row(str(len(rows)), "0", 1, name, event.at)
                rows.append(phase)
        elif event.state is AllocationState.RUNNING and phase is not None and phase.name == PHASES[JobState.STARTING]:
            key = event.allocation, event.incarnation
            started = _Row(str(len(rows)), phase.id, 2, event.task, phase.start, event.at, event.node)
            if starts.setdefault(key, started) is started:
                rows.append(started)
    return began, [row.view(began) for row in rows]


@dataclass(slots=True)
class _Row:
    id: str
    parent: str | None
    depth: int
    name: str
    start: datetime
    end: datetime | None = None
    node: str | None = None

    def view(self, began: datetime) -> SpanView:
        return SpanView(
            id=self.id,
            parent=self.parent,
            depth=self.depth,
            name=self.name,
            service="edge-agent" if self.node else "manager",
            node=self.node,
            start_us=_us(began, self.start),
            duration_us=None if self.end is None else max(0, _us(self.start, self.end)),
        )


def _us(since: datetime, at: datetime) -> int:
    return round((at - since).total_seconds() * 1e6)


def happened(event: Mapping[str, object], attempts: Mapping[str, int]) -> Happened | None:
    """What a job's event says of its life; None for one that says nothing of it. ``attempts``: of its allocations."""
    kind, data = str(event["type"]).removeprefix("ces.v1."), event["data"]
    aggregate, _, state = kind.partition(".")
    if not isinstance(data, dict):
        return None
    at = datetime.fromisoformat(str(event["time"]))
    if aggregate == "job" and state in set(JobState):
        return Happened(at, JobState(state), int(data["attempt"]))
    if aggregate == "allocation" and state in set(AllocationState) and data["allocation"] in attempts:
        allocation = str(data["allocation"])
        told = str(data["task"]), str(data["node"]), int(data["incarnation"])
        return Happened(at, AllocationState(state), attempts[allocation], allocation, *told)
    return None
