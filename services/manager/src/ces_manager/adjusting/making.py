"""What is carried out of a proposal: other rates and paths where that is all, else one move. Of several moves that end
a broken limit together, the first: when the task is there, the job is looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ulid import ULID

from ces_common.db.tables import JobRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.jobfile import Flow
from ces_common.messages.adjustments import AdjustmentProposal, ProposedFlow, ProposedMove
from ces_common.messages.moves import MoveRequest
from ces_common.messages.plans import FlowPlan, JobRevision, RevisionProposed
from ces_manager.adjusting.past_moves import left_of, past_moves
from ces_manager.errors import Conflict
from ces_manager.jobs.transitions import job_row
from ces_manager.plans.application_fit import application_misfit
from ces_manager.plans.move import OwnMove, commit_move
from ces_manager.plans.proposal import job_at
from ces_manager.plans.reservations import held_flows
from ces_manager.plans.residual import residual_of
from ces_manager.plans.revision import commit_revision

HAIR = 1e-9
"""Share of a rate that rounding may cost."""
SAME = 1e-6
"""Share by which a rate does not count as another one."""
NEVER_S = 1e9
"""Of a move whose gain is no more than its disturbance."""


class BeyondTerms(Conflict):
    """The application's file does not allow such a move now."""


def moves_in_order(tx: ReadTx, job: str, proposal: AdjustmentProposal) -> list[ProposedMove]:
    """Those of users' tasks first: the others are where they are because of them. Raises NotFound."""
    if proposal.adjustment is None:
        return []
    of_users = {task.name for task in job_row(tx, job).tasks if task.user is not None}
    return sorted(proposal.adjustment.moves, key=lambda move: move.task not in of_users)


def flows_of_move(tx: ReadTx, job: str, proposal: AdjustmentProposal, move: ProposedMove) -> list[FlowPlan] | None:
    """What the proposal has for the task's flows; None where it is for other ends, since further tasks are to move."""
    assert proposal.adjustment is not None
    row = job_row(tx, job)
    if len(proposal.adjustment.moves) > 1:
        return None
    asked = [flow for flow in row.flows if move.task in (flow.src, flow.dst)]
    return _plans(asked, proposal.adjustment.flows)


def make_move(
    tx: WriteTx,
    job: str,
    proposal: AdjustmentProposal,
    move: ProposedMove,
    given: Sequence[FlowPlan],
    why: str,
    remaining_s: float,
) -> str:
    """Returns what was done, in words. Raises NotFound, BeyondTerms, Conflict, Invalid; Stale where the job is not as
    it was."""
    row = _unchanged(tx, job, proposal)
    _check_terms(tx, row, move, bool(proposal.broken))
    further = bool(proposal.broken) and proposal.adjustment is not None and len(proposal.adjustment.moves) > 1
    own = OwnMove(why, move.requests, _pays_after_s(proposal, move, remaining_s), first=further)
    remark = commit_move(tx, job, MoveRequest(task=move.task, to=move.dst), given, own)
    if remark is not None:
        return remark
    count = 0 if proposal.adjustment is None else len(proposal.adjustment.moves)
    first = f", the first of {count} moves" if count > 1 else ""
    return f"{move.task} moves from {move.src} to {move.dst}{first}"


def change_flows(tx: WriteTx, job: str, proposal: AdjustmentProposal) -> str:
    """Returns what was done, in words. Raises NotFound, Conflict; Stale where the job is not as it was."""
    assert proposal.adjustment is not None
    row = _unchanged(tx, job, proposal)
    held = {(flow.src, flow.dst): flow for flow in held_flows(tx, row)}
    plans = _plans(row.flows, proposal.adjustment.flows)
    if plans is None:
        raise Conflict("the proposal does not have the job's flows")
    changed = [plan for plan in plans if _differs(plan, held[plan.src, plan.dst])]
    if not changed:
        return "its rates and paths are as they should be"
    _check_application(tx, row, plans, proposal.adjustment.assignments)
    asked = [JobRevision(job=row.id, attempt=row.attempt, flows=changed)]
    revision = RevisionProposed(revision=str(ULID()), version=proposal.version, cause="goals", jobs=asked)
    reason = commit_revision(tx, revision)
    if reason is not None:
        raise Conflict(f"its rates and paths cannot be set as proposed: {reason}")
    flows = "flow gets" if len(changed) == 1 else "flows get"
    return f"{len(changed)} {flows} another rate or path"


def _unchanged(tx: ReadTx, job: str, proposal: AdjustmentProposal) -> JobRow:
    """Raises NotFound, Stale."""
    return job_at(tx, job, job_row(tx, job).attempt, proposal.version)


def _check_terms(tx: WriteTx, row: JobRow, move: ProposedMove, broken: bool) -> None:
    """Also where a scheduler knows nothing of terms. Raises BeyondTerms."""
    terms, past = row.spec.adjust, past_moves(tx, row.id, tx.now)
    if terms is None:
        raise BeyondTerms(f"the file of job {row.name} does not say `adjust`")
    if not broken and past and past[-1].ago_s < terms.cooldown:
        raise BeyondTerms(f"the last move was {past[-1].ago_s:.0f} s ago, and nothing is broken")
    left = left_of(terms.budget, past)
    if left is not None and move.requests > left - (0.0 if broken else terms.reserve) + HAIR:
        raise BeyondTerms(f"{move.requests:g} requests would fall into the move, and {left:g} may this hour")


def _check_application(tx: ReadTx, row: JobRow, plans: Sequence[FlowPlan], places: dict[str, str]) -> None:
    """Raises Conflict where the plan would miss what it was proposed for."""
    nodes = {*places.values()}.union(*(plan.path for plan in plans))
    residual = residual_of(tx, nodes, {hop for plan in plans for hop in pairwise(plan.path)})
    misfit = application_misfit(tx, row, row.tasks, row.flows, places, plans, residual)
    if misfit is not None:
        raise Conflict(f"its rates and paths cannot be set as proposed: {misfit}")


def _differs(plan: FlowPlan, held: ReservationRow) -> bool:
    """By more than rounding, which no further proposal would end."""
    return plan.path != list(held.path) or abs(plan.rate - held.rate) > SAME * held.rate


def _plans(asked: Sequence[Flow], proposed: Sequence[ProposedFlow]) -> list[FlowPlan] | None:
    """In whole bit/s, rounded down, but not below a minimum that is reached. None where not all are there."""
    found = {(flow.src, flow.dst): flow for flow in proposed}
    if any((flow.src, flow.dst) not in found for flow in asked):
        return None
    return [_plan(flow, found[flow.src, flow.dst]) for flow in asked]


def _plan(asked: Flow, proposed: ProposedFlow) -> FlowPlan:
    rate = int(proposed.bandwidth)
    if proposed.bandwidth >= asked.min * (1 - HAIR):
        rate = max(rate, asked.min)
    return FlowPlan(src=asked.src, dst=asked.dst, rate=rate, path=proposed.path)


def _pays_after_s(proposal: AdjustmentProposal, move: ProposedMove, remaining_s: float) -> float:
    """A plan that breaks a limit is worth nothing."""
    found = proposal.adjustment
    assert found is not None
    gain = found.objective - (proposal.objective or 0.0)
    share = move.requests / found.disturbance if found.disturbance else 0.0
    cost = found.cost * share * remaining_s
    return min(NEVER_S, cost / gain) if gain > 0 else NEVER_S
