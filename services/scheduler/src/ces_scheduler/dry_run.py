"""A dry run: what would happen to a job that is not submitted, as a guest in a cycle over the queue as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from ulid import ULID

from ces_common.jobfile import JobFile
from ces_common.messages.events import QueueStatus, Reason
from ces_common.messages.queries import PlanAnswer
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.queue.reservations import Preempted
from ces_scheduler.card_choice import CardRoom
from ces_scheduler.cycle_input import NO_NODES, CycleInput, LastCycle, Proposed, cycle_input
from ces_scheduler.cycle_run import CycleRun, Placing, run_cycle
from ces_scheduler.deadline_shares import Judgement, judge
from ces_scheduler.deadlines import LAST, LATER, refusal, time_of
from ces_scheduler.job_problem import Refusals, barred, explain_refusals, lacks, reason_of
from ces_scheduler.offer import Offer
from ces_scheduler.sizing import in_hand_s
from ces_scheduler.solver_calls import SolverCalls
from ces_scheduler.start_cpu import begins_with

TOLD_LACKING = 2000
"""Nodes of which an answer tells how much they have too little, so that it fits in one message."""
OTHERS_FIRST = Reason(code="others-first", text="others come first: it has not been its turn")


def guest_of(file: JobFile, now: datetime) -> JobRecord:
    """The job as it would wait; a malleable one waits for its smallest size."""
    size = None if file.elastic is None else file.elastic.smallest
    sized = file if size is None else file.at_size(size)
    return JobRecord(
        id=str(ULID.from_datetime(now)),
        name=file.name,
        priority=file.priority,
        tenant=file.tenant,
        expected_s=file.duration,
        deadline=file.deadline,
        deadline_at=None if file.deadline is None else file.deadline.due_at(now),
        state=JobState.QUEUED,
        size=size,
        spec=None if size is None else file,
        tasks=sized.expand_tasks(),
        flows=sized.expand_flows(),
        users=file.users,
        requests=file.requests,
        objective=file.objective,
        submitted_at=now,
    )


def answer_for(
    guest: JobRecord,
    version: int,
    waiting: Sequence[JobRecord],
    offer: Offer | None,
    proposed: Sequence[Proposed],
    last: LastCycle | None,
    placing: Placing,
    preempting: Collection[str],
    standing: Judgement,
) -> PlanAnswer:
    """What would happen to the guest. ``offer``: what committed plans leave; None where there are no nodes;
    ``preempting``: see cycle_input; ``standing``: on the deadlines of the others. Takes as long as the solver does."""
    if offer is None:
        return _no(guest, version, placing, NO_NODES)
    everyone = [*waiting, guest]
    queued = [job for job in everyone if not standing.begins_later(job.id)]
    question = (queued, offer, proposed, guest.submitted_at, placing.parameters, last, placing.paths)
    judgement = standing
    if guest.deadline_at is not None:
        cost_s = in_hand_s(offer.records.values())
        judgement = judge(offer, everyone, guest.submitted_at.timestamp(), cost_s, placing.parameters)
    given = cycle_input(*question, preempting, standing.pressing | judgement.pressing)
    bar = given.entries[guest.id].reason
    if bar is not None:
        refused = {name: dict(row) for name, row in barred(guest.tasks, offer).items()}
        return _no(guest, version, placing, bar, refused=refused)
    if guest.id in judgement.refused:
        end_s = judgement.refused[guest.id]
        reason = refusal(end_s, guest.id in judgement.doubtful)
        return _no(guest, version, placing, reason).model_copy(update={"end_at": time_of(end_s)})
    share = judgement.shares.get(guest.id)
    end_at = None if share is None else time_of(share.end_s)
    if share is not None and judgement.begins_later(guest.id):
        times = {"start_at": time_of(share.begin_s), "end_at": end_at}
        return _no(guest, version, placing, LATER if share.kept else LAST).model_copy(update=times)
    run = run_cycle(version, given, placing, judgement=judgement)
    if guest.id not in run.starts:
        return _waiting(guest, run, placing).model_copy(update={"end_at": end_at})
    decision = run.starts[guest.id]
    return PlanAnswer(
        feasible=True,
        version=version,
        solver=decision.solver,
        assignments=decision.assignments,
        flows=decision.flows,
        metrics=decision.metrics,
        bound=decision.bound,
        refused=decision.refused,
        lacking=decision.lacking,
        decision_ms=decision.decision_ms,
        time_limit_s=decision.time_limit_s,
        seed=decision.seed,
        policy=decision.policy,
        fallback=decision.fallback,
        size=run.started[guest.id].size,
        cards=decision.cards,
        cpu=begins_with(run.started[guest.id]),
        end_at=end_at,
        requests=decision.requests,
    )


def _waiting(guest: JobRecord, run: CycleRun, placing: Placing) -> PlanAnswer:
    """Why the guest would wait, and until when. What each node lacks is judged by what is free now, whoever comes
    first."""
    given = run.given
    status = next((each for each in run.statuses if each.job == guest.id), None)  # not every policy states one
    job = next(each for each in given.state.waiting if each.name == guest.id)
    room = CardRoom(given.offer, given.records)
    seeds = {guest.id: guest.attempt}
    calls = SolverCalls(placing.solver, seeds, run.calls.seconds, placing.time_limit_s, cards=room)
    result = calls(job, given.offer.cluster)
    reason = None if status is None else status.reason
    preempted = run.decisions.preempted.get(guest.id)
    if preempted is not None:
        reason = Reason(code="preempting", text=_making_room(guest, preempted, given))
    if reason is None:
        reason = OTHERS_FIRST if result.reason is None else reason_of(calls.said(guest.id, result.reason))
    refused = calls.explained(guest.id, explain_refusals(guest.tasks, given.offer, result.considered))
    spent_ms = run.calls.spent_ms.get(guest.id, 0.0) + calls.spent_ms[guest.id]
    lacking = lacks(guest.tasks, given.offer, refused, TOLD_LACKING)
    return _no(guest, run.version, placing, reason, status, refused, spent_ms).model_copy(update={"lacking": lacking})


def _making_room(guest: JobRecord, preempted: Preempted, given: CycleInput) -> str:
    """Who would, and how; of other tenants only how many."""
    hows = (("suspended", preempted.suspended), ("stopped", preempted.stopped))
    said = [f"{_of_tenant(guest.tenant, names, given)} {how}" for how, names in hows if names]
    return f"less urgent jobs would make room for it: {' and '.join(said)}"


def _of_tenant(tenant: str, jobs: Iterable[str], given: CycleInput) -> str:
    records = [given.offer.records[job] for job in jobs]
    named = [record.name for record in records if record.tenant == tenant]
    others = len(records) - len(named)
    return ", ".join([*named, *([f"{others} of other tenants"] if others else [])])


def _no(
    guest: JobRecord,
    version: int,
    placing: Placing,
    reason: Reason,
    status: QueueStatus | None = None,
    refused: Refusals | None = None,
    spent_ms: float = 0.0,
) -> PlanAnswer:
    return PlanAnswer(
        feasible=False,
        version=version,
        solver=placing.solver.name,
        reason=reason,
        position=None if status is None else status.position,
        start_at=None if status is None else status.start_at,
        held_by=[] if status is None else status.held_by,
        refused=refused or {},
        decision_ms=spent_ms,
        time_limit_s=placing.time_limit_s,
        seed=guest.attempt,
        fallback=placing.fallback,
    )
