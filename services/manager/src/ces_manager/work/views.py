"""Profiles of jobs as the REST API shows them: what their tasks take, and what that is on other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import undefer_group

from ces_common.db.tables import EXPANDED, AllocationRow, JobRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.db.work_tables import LearnedWorkRow
from ces_common.messages.work import ClassWork, GroupProfile, JobProfile, LearnedWork, SeenWork
from ces_common.scores import scores_of
from ces_common.work import NodeSpeeds, predicted, speeds_of, trusted, work_of
from ces_manager.errors import NotFound
from ces_manager.work.groups import TaskPace, group_of_task, seen_work
from ces_manager.work_meter import WorkMeter

NOT_SEEN = (
    "no task of it runs that was seen for long enough: it takes ten steps and ten seconds after the first ones, and "
    "lines of progress that tell a step or a round"
)
NOT_MEASURED = "node {} tells no speed of a core: ces node measure {}"
NOISY = "node {} was measured noisily"
ONE_CLASS_OF_MANY = "which class predicts best is not known: no job of this name has ended on nodes that differ enough"
NOTHING_PREDICTED = "nothing is predicted for node {}"
WAITS = "how long it waits on another node, for data or for other tasks, is taken to be as long as here"


def learned_error(tx: ReadTx, job: JobRow) -> float | None:
    """By which share predictions for jobs of this name were wrong, of the group where that is most."""
    query = select(LearnedWorkRow.learned).where(LearnedWorkRow.tenant == job.tenant, LearnedWorkRow.name == job.name)
    errors = [each.error for each in tx.session.scalars(query)]
    return max((each for each in errors if each is not None), default=None)


def job_profile(tx: ReadTx, job: str, meter: WorkMeter, nodes: Sequence[str]) -> JobProfile:
    """``nodes``: for which it is predicted what a step takes. Raises NotFound."""
    row = tx.session.get(JobRow, job, options=[undefer_group(EXPANDED)])
    if row is None:
        raise NotFound(f"no job {job}")
    seen = seen_work(_paces(tx, row, meter))
    query = select(LearnedWorkRow).where(LearnedWorkRow.tenant == row.tenant, LearnedWorkRow.name == row.name)
    known = {each.task_group: each.learned for each in tx.session.scalars(query)}
    at = {each.node for some in seen.values() for each in some}
    measured = _measured(tx, {*at, *nodes})
    missing = [each for each in nodes if each not in measured]
    if missing:
        raise NotFound(f"no node {missing[0]}: ces get nodes lists those that there are")
    groups = list(dict.fromkeys(group_of_task(task.name) for task in row.tasks))
    return JobProfile(
        job=job,
        name=row.name,
        groups=[_profile(group, seen.get(group, []), known.get(group), measured, nodes) for group in groups],
    )


def _paces(tx: ReadTx, row: JobRow, meter: WorkMeter) -> Iterator[TaskPace]:
    query = select(AllocationRow).where(AllocationRow.job == row.id, AllocationRow.attempt == row.attempt)
    for each in tx.session.scalars(query):
        if (pace := meter.pace(each.node, each.id)) is not None:
            yield TaskPace(each.task, each.node, max(each.cpu_desired or each.cpu, 1) / 1000, pace)


def _measured(tx: ReadTx, nodes: set[str]) -> dict[str, tuple[NodeSpeeds | None, bool]]:
    """How fast their cores are, and whether that is noisy."""
    query = select(NodeRow.name, NodeRow.measured).where(NodeRow.name.in_(nodes))
    return {
        row.name: (None, False)
        if row.measured is None
        else (speeds_of(row.measured.measurements), scores_of(row.measured).noisy)
        for row in tx.session.execute(query)
    }


def _profile(
    group: str,
    seen: Sequence[SeenWork],
    known: LearnedWork | None,
    measured: Mapping[str, tuple[NodeSpeeds | None, bool]],
    nodes: Sequence[str],
) -> GroupProfile:
    """By what its tasks take now, where they were seen, with the errors that were learned; else by what was learned."""
    speeds = {node: each for node, (each, _) in measured.items() if each is not None}
    here = max((each for each in seen if each.node in speeds), key=lambda each: each.steps, default=None)
    learned = {} if known is None else known.classes
    if here is None:
        classes = dict(learned)
    else:
        classes = {
            kind: ClassWork(work=work, error=learned[kind].error if kind in learned else None)
            for kind, work in work_of(here.cpu.ms, speeds[here.node]).items()
        }
    found, doubts = [], [NOT_SEEN] if not seen else []
    if here is None:
        doubts += [NOT_MEASURED.format(each.node, each.node) for each in seen]
    for node in nodes:
        there = speeds.get(node)
        if there is None:
            doubts.append(NOT_MEASURED.format(node, node))
            continue
        at = None if here is None else speeds[here.node]
        told = predicted(node, classes, there, here, at) if classes else None
        if told is None:
            doubts.append(NOTHING_PREDICTED.format(node))
        else:
            found.append(told)
    if found:
        involved = [each.node for each in found] + ([] if here is None else [here.node])
        doubts += [NOISY.format(node) for node in dict.fromkeys(involved) if measured[node][1]]
        if len(trusted(classes, classes)) > 1:
            doubts.append(ONE_CLASS_OF_MANY)
        if any(each.step is not None for each in found):
            doubts.append(WAITS)
    return GroupProfile(
        group=group,
        seen=list(seen),
        runs=0 if known is None else known.runs,
        classes=classes,
        predicted=found,
        doubts=doubts,
    )
