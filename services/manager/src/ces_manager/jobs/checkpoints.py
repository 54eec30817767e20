"""Where checkpoints of malleable jobs lie: what agents claim of them, and what follows when the first task moves.

A node is believed only of jobs that it has tasks of, or had. Nothing replaces a checkpoint whose writer is later: an
attempt that is over, or an incarnation that was replaced, may still be heard of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from ces_common.db.tables import AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.checkpoints import (
    COPIES,
    BegunFrom,
    Checkpoint,
    CheckpointReport,
    CheckpointRestored,
    CheckpointStored,
    HeldCopies,
    JobCheckpoints,
    StoredCheckpoint,
)
from ces_common.states import JOB_OVER, AllocationState
from ces_manager.text import storable

MAX_REASON = 500
LEAST_APART = timedelta(seconds=5)  # two checkpoints of one writer
HOLDERS = 4  # of one checkpoint that are counted on
Event = tuple[str, CheckpointStored | CheckpointRestored]


@dataclass(frozen=True)
class FirstTask:
    """The first task in one attempt: where, and its incarnation there."""

    node: str
    incarnation: int
    state: AllocationState


@dataclass(frozen=True)
class JobThere:
    """What a claim is judged by. ``firsts``: by attempt; ``nodes``: of the reporting nodes, those that have tasks of
    the job or had some."""

    id: str
    attempt: int
    known: JobCheckpoints
    firsts: Mapping[int, FirstTask] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()

    def may_write(self, node: str, claimed: Checkpoint) -> bool:
        """Whether the node has this writer, and nobody later has begun."""
        first, now = self.firsts.get(claimed.attempt), self.firsts.get(self.attempt)
        if claimed.attempt > self.attempt:  # that of a size which the job goes to has rows already
            return False
        if first is None or first.node != node or not 1 <= claimed.incarnation <= first.incarnation:
            return False
        if claimed.attempt != self.attempt and now is not None and now.state is not AllocationState.PENDING:
            return False
        return not self.known.stored or claimed.writer >= self.known.stored[0].writer


def packed(job: JobThere, node: str, claimed: Checkpoint, now: datetime | None) -> tuple[JobCheckpoints, list[Event]]:
    """What is known once a node has said that it has packed a checkpoint; nothing else than before where it is not
    believed, or known, or follows too soon: it will be said again. ``now``: None for a time that is late enough.
    Pure."""
    if claimed.digest in {each.digest for each in job.known.stored} or not job.may_write(node, claimed):
        return job.known, []
    last = job.known.stored[0] if job.known.stored else None
    if now is not None and last is not None and last.writer == claimed.writer and now - last.at < LEAST_APART:
        return job.known, []
    stored = [StoredCheckpoint(**claimed.model_dump(), at=now or datetime.min), *job.known.stored]
    update: dict[str, Any] = {"stored": _counted(stored)}
    if claimed.attempt == job.attempt:  # so it has begun there
        update |= {"restoring": False, "former": None}
    return job.known.model_copy(update=update), [("packed", _event(job.id, node, claimed))]


def held(job: JobThere, node: str, claimed: HeldCopies) -> tuple[JobCheckpoints, list[Event]]:
    """The same once it has said of which checkpoints it holds copies. Pure."""
    if node not in job.nodes:
        return job.known, []
    stored, events = [], list[Event]()
    for each in job.known.stored:
        if (each.digest in claimed.digests) != (node in each.nodes):
            if node in each.nodes:
                nodes = [other for other in each.nodes if other != node]
            elif len(each.nodes) >= HOLDERS:
                nodes = each.nodes
            else:
                nodes = [*each.nodes, node]
                events.append(("copied", _event(job.id, node, each)))
            stored.append(each.model_copy(update={"nodes": nodes}))
        else:
            stored.append(each)
    return job.known.model_copy(update={"stored": _counted(stored)}), events


def begun(job: JobThere, node: str, claimed: BegunFrom) -> tuple[JobCheckpoints, list[Event]]:
    """The same once it has said from what the first task begins there. Pure."""
    first = job.firsts.get(job.attempt)
    told = (claimed.attempt, claimed.incarnation)
    if first is None or (first.node, job.attempt, first.incarnation) != (node, *told) or told <= job.known.begun:
        return job.known, []
    reason = None if claimed.reason is None else storable(claimed.reason, MAX_REASON)
    event = CheckpointRestored(**claimed.model_dump(exclude={"reason"}), node=node, reason=reason)
    return job.known.model_copy(update={"begun": told}), [("restored", event)]


def moved(known: JobCheckpoints, before: str | None, node: str, reachable: bool) -> JobCheckpoints:
    """What is known once the first task has a place. ``before``: where it was committed to last; ``reachable``: whether
    that node can be asked for what lies there. Pure."""
    if known.restoring and node == known.former:  # where the newest lies
        return known.model_copy(update={"restoring": False, "former": None})
    if node == before or before is None or known.restoring:
        return known
    return known.model_copy(update={"restoring": True, "former": before if reachable else None})


def place_first(tx: WriteTx, row: JobRow, node: str) -> None:
    """Note that a malleable job's first task is to be on this node."""
    before = None if row.checkpoint_node is None else tx.session.get(NodeRow, row.checkpoint_node)
    row.checkpoints = moved(row.checkpoints, row.checkpoint_node, node, before is not None and before.state == "ready")
    row.checkpoint_node = node


def first_runs(row: JobRow) -> None:
    """Note that the first task has begun where it is."""
    if row.checkpoints.restoring:
        row.checkpoints = row.checkpoints.model_copy(update={"restoring": False, "former": None})


def with_news(tx: ReadTx, reports: Sequence[CheckpointReport]) -> list[CheckpointReport]:
    """The reports that say anything new; most do not, and lock nothing."""
    jobs = _jobs_there(tx, reports)
    return [
        report
        for report in reports
        if any(events or known != jobs[job].known for job, known, events in _read(jobs, report, None))
    ]


def take_reports(tx: WriteTx, reports: Iterable[CheckpointReport]) -> None:
    """Store what agents say of checkpoints."""
    for report in reports:
        jobs = _jobs_there(tx, [report])
        for job, known, events in _read(jobs, report, tx.now):
            if known != jobs[job].known or events:
                row = tx.session.get_one(JobRow, job)
                row.checkpoints, row.version = known, tx.version
                for kind, event in events:
                    tx.emit("checkpoint", kind, job, event, job=job)


def _read(
    jobs: Mapping[str, JobThere], report: CheckpointReport, now: datetime | None
) -> list[tuple[str, JobCheckpoints, list[Event]]]:
    """(Job, what is known of it after the report, events) for each job of which it speaks."""
    at, said = dict(jobs), defaultdict[str, list[Event]](list)

    def note(job: str, outcome: tuple[JobCheckpoints, list[Event]]) -> None:
        known, events = outcome
        there = at[job]
        at[job] = JobThere(there.id, there.attempt, known, there.firsts, there.nodes)
        said[job] += events

    for each in report.packed:
        if each.job in at:
            note(each.job, packed(at[each.job], report.node, each.checkpoint, now))
    for copies in report.held:
        if copies.job in at:
            note(copies.job, held(at[copies.job], report.node, copies))
    for beginning in report.begun:
        if beginning.job in at:
            note(beginning.job, begun(at[beginning.job], report.node, beginning))
    return [(job, at[job].known, events) for job, events in said.items()]


def _jobs_there(tx: ReadTx, reports: Sequence[CheckpointReport]) -> dict[str, JobThere]:
    """The malleable jobs of which the reports speak, but those that are over."""
    named = {each.job for report in reports for each in report.packed}
    named |= {each.job for report in reports for each in report.held}
    named |= {each.job for report in reports for each in report.begun}
    if not named:
        return {}
    nodes = [report.node for report in reports]
    columns = select(JobRow.id, JobRow.attempt, JobRow.checkpoints)
    jobs = tx.session.execute(
        columns.where(JobRow.id.in_(named), JobRow.size.is_not(None), JobRow.state.not_in(JOB_OVER))
    ).all()
    concerned = (AllocationRow.rank == 0) | AllocationRow.node.in_(nodes)
    tasks = select(
        AllocationRow.job,
        AllocationRow.attempt,
        AllocationRow.rank,
        AllocationRow.node,
        AllocationRow.incarnation,
        AllocationRow.state,
    )
    firsts: dict[str, dict[int, FirstTask]] = defaultdict(dict)
    there: dict[str, set[str]] = defaultdict(set)
    for row in tx.session.execute(tasks.where(AllocationRow.job.in_([job.id for job in jobs]), concerned)):
        if row.rank == 0:
            firsts[row.job][row.attempt] = FirstTask(row.node, row.incarnation, row.state)
        there[row.job].add(row.node)
    return {
        job.id: JobThere(job.id, job.attempt, job.checkpoints, firsts[job.id], frozenset(there[job.id])) for job in jobs
    }


def _counted(stored: Sequence[StoredCheckpoint]) -> list[StoredCheckpoint]:
    """The newest, and as many older ones of which there are copies as are kept."""
    copied = [each for each in stored[1:] if each.nodes]
    return [*stored[:1], *copied[:COPIES]]


def _event(job: str, node: str, checkpoint: Checkpoint) -> CheckpointStored:
    what = checkpoint.model_dump(include=set(Checkpoint.model_fields))
    return CheckpointStored(job=job, node=node, **what)
