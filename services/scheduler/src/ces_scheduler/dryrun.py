"""What would happen to a job that nobody has submitted: it is a guest in a cycle over the queue as it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ulid import ULID

from ces_common.jobfile import JobFile
from ces_common.messages.events import Reason, Standing
from ces_common.messages.queries import PlanAnswer
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.multi.reservations import Preempted
from ces_scheduler.deciding import Asking
from ces_scheduler.queueing import NO_NODES, Look, Past, Proposed, look_at
from ces_scheduler.rounds import Placing, Round, play
from ces_scheduler.translate import Offer, explain_refusals, reason_of

OTHERS_FIRST = Reason(code="others-first", text="others come first: it has not been its turn")


def guest_of(file: JobFile, now: datetime) -> JobRecord:
    return JobRecord(
        id=str(ULID.from_datetime(now)),
        name=file.name,
        priority=file.priority,
        tenant=file.tenant,
        expected_s=file.duration,
        state=JobState.QUEUED,
        tasks=file.expand_tasks(),
        flows=file.expand_flows(),
        submitted_at=now,
    )


def answer_for(
    guest: JobRecord,
    version: int,
    waiting: Sequence[JobRecord],
    offer: Offer | None,
    proposed: Sequence[Proposed],
    past: Past | None,
    placing: Placing,
) -> PlanAnswer:
    """``offer``: what is committed; None where there are no nodes. Takes as long as the solver does."""
    if offer is None:
        return _no(guest, version, placing, NO_NODES)
    look = look_at([*waiting, guest], offer, proposed, guest.submitted_at, placing.parameters, past, placing.paths)
    barred = look.entries[guest.id].reason
    if barred is not None:
        return _no(guest, version, placing, barred)
    played = play(version, look, placing)
    if guest.id not in played.starts:
        return _waiting(guest, played, placing)
    decision = played.starts[guest.id]
    return PlanAnswer(
        feasible=True,
        version=version,
        solver=decision.solver,
        assignments=decision.assignments,
        flows=decision.flows,
        metrics=decision.metrics,
        bound=decision.bound,
        refused=decision.refused,
        decision_ms=decision.decision_ms,
        time_limit_s=decision.time_limit_s,
        seed=decision.seed,
        policy=decision.policy,
        fallback=decision.fallback,
    )


def _waiting(guest: JobRecord, played: Round, placing: Placing) -> PlanAnswer:
    """Why it would wait, and until when. What each node lacks is seen on what is free now, whoever comes first."""
    look = played.look
    standing = next(each for each in played.standings if each.job == guest.id)
    job = next(each for each in look.state.waiting if each.name == guest.id)
    asking = Asking(placing.solver, {guest.id: guest.attempt}, played.asking.seconds, placing.time_limit_s)
    result = asking(job, look.offer.cluster)
    reason = standing.reason
    preempted = played.decisions.preempted.get(guest.id)
    if preempted is not None:
        reason = Reason(code="preempting", text=_making_room(preempted, look))
    if reason is None:
        reason = OTHERS_FIRST if result.reason is None else reason_of(result.reason)
    refused = explain_refusals(guest.tasks, look.offer, result.considered)
    spent_ms = played.asking.spent_ms.get(guest.id, 0.0) + asking.spent_ms[guest.id]
    return _no(guest, played.version, placing, reason, standing, refused, spent_ms)


def _making_room(preempted: Preempted, look: Look) -> str:
    """Who would, and how."""
    records = look.offer.records
    hows = (("suspended", preempted.suspended), ("stopped", preempted.stopped))
    said = [f"{', '.join(records[name].name for name in names)} {how}" for how, names in hows if names]
    return f"less urgent jobs would make room for it: {' and '.join(said)}"


def _no(
    guest: JobRecord,
    version: int,
    placing: Placing,
    reason: Reason,
    standing: Standing | None = None,
    refused: dict[str, dict[str, str]] | None = None,
    spent_ms: float = 0.0,
) -> PlanAnswer:
    return PlanAnswer(
        feasible=False,
        version=version,
        solver=placing.solver.name,
        reason=reason,
        position=None if standing is None else standing.position,
        start_at=None if standing is None else standing.start_at,
        held_by=[] if standing is None else standing.held_by,
        refused=refused or {},
        decision_ms=spent_ms,
        time_limit_s=placing.time_limit_s,
        seed=guest.attempt,
        fallback=placing.fallback,
    )
