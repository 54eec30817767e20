"""Where the jobs of a node could go if it took no more work: each by itself, as things are now. Pure but for the
stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ces_common.messages.events import Reason
from ces_common.messages.queries import DrainAnswer
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.model.errors import ProblemError
from ces_core.queue.jobs import WaitingJob
from ces_scheduler.card_choice import CardRoom
from ces_scheduler.cycle_run import Placing
from ces_scheduler.eligibility import lacking_data, unmet_constraints
from ces_scheduler.job_problem import problem_of, reason_of
from ces_scheduler.offer import Offer, holder_of
from ces_scheduler.solver_calls import SolverCalls

LONGEST_S: Final = 10.0  # for all jobs together; of those that are left then nothing is said
NO_PLACE: Final = Reason(code="no-place", text="no place was found")


def places_elsewhere(
    node: str, version: int, offer: Offer, placing: Placing, seconds: Callable[[], float] = time.monotonic
) -> DrainAnswer:
    """Of each job with something on the node, whether there is a place for it on the others once it has given back what
    it holds, and why not. Jobs that move together may be in each other's way, and others may come first."""
    began, places, reasons = seconds(), [], {}
    known = offer.nodes.get(node)
    nodes = offer.nodes if known is None else offer.nodes | {node: known.model_copy(update={"cordoned": True})}
    cordoned = replace(offer, nodes=nodes)
    for record in offer.records.values():
        if all(each.node != node or each.over for each in record.allocations):
            continue
        if seconds() - began > LONGEST_S:
            break
        reason = _hindrance(_waiting(record), cordoned.without(holder_of(record)), placing, seconds)
        if reason is None:
            places.append(record.id)
        else:
            reasons[record.id] = reason.text
    return DrainAnswer(version=version, places=places, reasons=reasons)


def _waiting(record: JobRecord) -> JobRecord:
    """The job as it would queue again; a malleable one is content with its smallest size."""
    queued: dict[str, Any] = {"state": JobState.QUEUED, "allocations": [], "reserved": [], "resizing": None}
    spec = record.spec
    if spec is None or spec.elastic is None:
        return record.model_copy(update=queued)
    sized = spec.at_size(spec.elastic.smallest)
    return record.model_copy(
        update=queued | {"size": spec.elastic.smallest, "tasks": sized.expand_tasks(), "flows": sized.expand_flows()}
    )


def _hindrance(job: JobRecord, offer: Offer, placing: Placing, seconds: Callable[[], float]) -> Reason | None:
    """Why it has no place; None where it has one."""
    lacking = lacking_data(job.flows, offer.nodes) or unmet_constraints(job.tasks, offer.nodes)
    if lacking is not None:
        return lacking
    try:
        problem = problem_of(job, offer, placing.paths)
    except ProblemError as error:
        return Reason(code="impossible", text=f"the job makes no sense: {error}", forever=True)
    room = CardRoom(offer, {job.id: job})
    calls = SolverCalls(placing.solver, {job.id: job.attempt}, seconds, placing.time_limit_s, cards=room)
    asked = WaitingJob(job.id, problem, job.submitted_at.timestamp(), job.priority, job.tenant, job.expected_s)
    result = calls(asked, offer.cluster)
    if result.plan is not None:
        return None
    return NO_PLACE if result.reason is None else reason_of(calls.said(job.id, result.reason))
