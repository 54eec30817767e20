"""Lateness: which jobs have missed the deadline of their state, and what the others wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.tables import LIVE_STATES, AllocationRow, HopRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.states import AllocationState, JobState
from ces_common.task_move import MoveState
from ces_manager.nodes.deadlines import COMPUTE_CTL, NETWORK_CTL, Responsible, Step, Waited, waiting_for
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.timeouts import Timeouts

_TIMED = [state for state in JobState if Timeouts().patience(state) is not None]
_JOBS = select(JobRow.id, JobRow.state, JobRow.attempt, JobRow.restarts, JobRow.late).where(JobRow.state.in_(_TIMED))
_WORKERS = (
    select(
        AllocationRow.id,
        AllocationRow.incarnation,
        AllocationRow.task,
        AllocationRow.node,
        AllocationRow.job,
        AllocationRow.being_started,
        AllocationRow.waits,
        JobRow.state.label("job_state"),
    )
    .join(JobRow, (JobRow.id == AllocationRow.job) & (JobRow.attempt == AllocationRow.attempt))
    # A job that starts has a deadline as a whole, one that runs has one for each worker that is to start again; one
    # that is paused starts nothing.
    .where(AllocationRow.state == AllocationState.PENDING, JobRow.state.in_((JobState.STARTING, JobState.RUNNING)))
    .order_by(AllocationRow.job, AllocationRow.rank)
)

_MOVES = (  # of a job that is paused nothing is asked, and its time begins anew
    select(MoveRow.id, MoveRow.job, MoveRow.task, MoveRow.destination)
    .join(JobRow, JobRow.move == MoveRow.id)
    .where(MoveRow.state == MoveState.RESERVED, JobRow.state == JobState.RUNNING)
)


@dataclass(frozen=True, slots=True)
class WaitingMove:
    id: str
    job: str
    task: str
    destination: str


@dataclass(frozen=True, slots=True)
class WaitingJob:
    id: str
    state: JobState
    attempt: int
    restarts: int
    late: int


@dataclass(frozen=True, slots=True)
class PendingWorker:
    id: str
    incarnation: int
    task: str
    node: str
    job: str
    being_started: bool
    waits: str | None
    job_state: JobState


@dataclass(frozen=True, slots=True)
class JobWaits:
    """Jobs on their way to running, the workers that they, or running jobs, wait for, and tasks whose move waits for
    the network."""

    jobs: Sequence[WaitingJob]
    workers: Sequence[PendingWorker]
    moves: Sequence[WaitingMove] = ()


@dataclass(frozen=True, slots=True)
class Late:
    """Why a job in ``state`` has waited too long. ``hindered``: while it waited, somebody whom it needs was away.
    ``allocation``: whose worker has not started again; ``move``: it is the move of one of its tasks that has."""

    state: JobState
    why: str
    hindered: bool = False
    allocation: str | None = None
    move: bool = False


def waits_of(tx: ReadTx) -> JobWaits:
    """What is waited for now."""
    jobs = [WaitingJob(*row) for row in tx.session.execute(_JOBS)]
    workers = [PendingWorker(*row) for row in tx.session.execute(_WORKERS)]
    return JobWaits(jobs, workers, [WaitingMove(*row) for row in tx.session.execute(_MOVES)])


def jobs_over(tx: ReadTx, nodes: Collection[str]) -> set[str]:
    """Jobs that may have a deadline, with a task on one of the nodes or a flow that passes one."""
    if not nodes:
        return set()
    timed = JobRow.state.in_((*_TIMED, JobState.RUNNING))
    on_them = (
        select(JobRow.id)
        .join(AllocationRow, (AllocationRow.job == JobRow.id) & (AllocationRow.attempt == JobRow.attempt))
        .where(timed, AllocationRow.state.in_(LIVE_STATES), AllocationRow.node.in_(nodes))
    )
    through = (  # its last node has a task of the flow's job
        select(JobRow.id)
        .join(ReservationRow, ReservationRow.job == JobRow.id)
        .join(HopRow, HopRow.number == ReservationRow.number)
        .where(timed, ReservationRow.held, HopRow.src.in_(nodes))
    )
    return {*tx.session.scalars(on_them), *tx.session.scalars(through)}


def judge(
    waits: JobWaits,
    silent: Mapping[str, float],
    hindered: Collection[str],
    timeouts: Timeouts,
    failure_detector: FailureDetector,
    now: float,
) -> tuple[dict[str, Late], dict[str, str]]:
    """Count time up to ``now``, and return the jobs that are late, and of others what keeps them from going on.
    ``silent``: for how long each node has not been heard; ``hindered``: jobs of which one of the nodes is away."""
    nodes = {name: Responsible(f"node {name}", now - age, timeouts.unreachable_after_s) for name, age in silent.items()}
    network_ctl, compute_ctl = failure_detector.controller(NETWORK_CTL), failure_detector.controller(COMPUTE_CTL)

    def start(job: str, stamp: Hashable, workers: Sequence[PendingWorker]) -> Step:
        there = sorted({worker.node for worker in workers} & nodes.keys())
        begun = [worker for worker in workers if worker.being_started]
        said = next((f"{each.task} on {each.node} {each.waits}" for each in begun if each.waits), None)
        responsible = [compute_ctl, *(nodes[name] for name in there)]
        return Step(stamp, responsible, bool(begun), job in hindered, said)

    of_job: dict[str, list[PendingWorker]] = defaultdict(list)
    for worker in waits.workers:
        of_job[worker.job].append(worker)
    steps = {}
    for job in waits.jobs:
        stamp = (job.state, job.attempt, job.restarts)
        if job.state is JobState.STARTING:
            steps[job.id] = start(job.id, stamp, of_job[job.id])
        elif job.state is JobState.RESIZING:  # workers end, then the network is laid
            steps[job.id] = Step(stamp, [compute_ctl, network_ctl], hindered=job.id in hindered)
        else:
            steps[job.id] = Step(stamp, [network_ctl], hindered=job.id in hindered)
    again = [worker for worker in waits.workers if worker.job_state is JobState.RUNNING]
    restarts = {worker.id: start(worker.job, worker.incarnation, [worker]) for worker in again}
    waited, restarting = failure_detector.jobs.look(steps, now), failure_detector.workers.look(restarts, now)
    laid = {
        each.id: Step(each.id, [network_ctl, *(nodes[name] for name in {each.destination} & nodes.keys())])
        for each in waits.moves
    }
    moving = failure_detector.moves.look(laid, now)
    late: dict[str, Late] = {}
    hindrances: dict[str, str] = {}
    for job in sorted(waits.jobs, key=lambda job: job.id):
        patience_s = timeouts.patience(job.state, job.late)
        if patience_s is not None and (why := _overdue(waited[job.id], patience_s, timeouts)):
            late[job.id] = Late(job.state, f"{job.state.value} {why}", waited[job.id].hindered)
        elif why := waiting_for(steps[job.id], waited[job.id], now, failure_detector.since):
            hindrances[job.id] = why
    for worker in again:
        if why := _overdue(restarting[worker.id], timeouts.starting_s, timeouts):
            words = f"{worker.task} on {worker.node} has not started again {why}"
            late.setdefault(worker.job, Late(JobState.RUNNING, words, restarting[worker.id].hindered, worker.id))
        elif why := waiting_for(restarts[worker.id], restarting[worker.id], now, failure_detector.since):
            hindrances[worker.job] = why
    for move in waits.moves:
        if why := _overdue(moving[move.id], timeouts.preparing_s, timeouts):
            words = f"the network of {move.task} was not in place on {move.destination} {why}"
            late.setdefault(move.job, Late(JobState.RUNNING, words, move=True))
    return late, hindrances


def _overdue(waited: Waited, patience_s: float, timeouts: Timeouts) -> str | None:
    if waited.idle > patience_s:
        return f"for more than {patience_s:.0f} s"
    if waited.preparing > timeouts.longest_s:
        return f"though agents were at it for more than {timeouts.longest_s:.0f} s"
    return None
