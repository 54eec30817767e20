"""What became of proposals, read off a log."""

from __future__ import annotations

from typing import Any

import pytest

from ces_experiments.control_plane.queue.answers import Proposal, proposal_of, unanswered, victim_sets
from ces_experiments.control_plane.queue.run import failure_of

CLEAN = victim_sets([])


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": f"ces.v1.{kind}", "data": data}


def told(urgent: str, *victims: str, how: str = "stop") -> dict[str, Any]:
    named = [{"job": victim, "attempt": 1, "how": how} for victim in victims]
    return event("preemption.committed", preemption=f"{urgent} {victims}", job=urgent, victims=named)


def leaves(victim: str) -> dict[str, Any]:
    return event("job.rescheduling", job=victim, attempt=1)


def test_what_was_proposed_is_known_by_its_id() -> None:
    assert proposal_of(event("plan.proposed", plan="p1", job="j")) == Proposal("plan", "p1", "j")
    assert proposal_of(event("revision.proposed", revision="r1", jobs=[])) == Proposal("revision", "r1")
    made = event("preemption.proposed", preemption="x1", job="j", victims=[{"job": "v", "attempt": 2, "how": "stop"}])
    assert proposal_of(made) == Proposal("preemption", "x1", "j")


def test_a_proposal_that_was_neither_committed_nor_rejected_is_lost() -> None:
    proposals = [Proposal("plan", f"p{i}", "j") for i in range(3)] + [Proposal("revision", f"r{i}") for i in range(3)]
    events = [
        event("plan.committed", plan="p0"),
        event("plan.rejected", plan="p1"),
        event("plan.revised", revision="r0"),
        event("revision.rejected", revision="r1"),
        event("job.rescheduling", job="j", attempt=1, reason="node a was lost"),
    ]
    assert unanswered(proposals, events) == ["p2", "r2"]


def test_a_preemption_is_answered_like_any_other_proposal() -> None:
    proposals = [Proposal("preemption", name, "u") for name in ("told", "rejected", "lost")]
    events = [
        event("preemption.committed", preemption="told", job="u", victims=[]),
        event("preemption.rejected", preemption="rejected"),
    ]
    assert unanswered(proposals, events) == ["lost"]


def test_one_set_of_victims_after_the_other_is_as_it_should_be() -> None:
    events = [
        told("urgent", "v", "w"),
        *map(leaves, "vw"),
        event("job.queued", job="v", attempt=2),
        event("job.waiting", job="w"),
        event("job.queued", job="w", attempt=2),
        told("urgent", "x"),
        leaves("x"),
        told("other", "y"),
    ]
    found = victim_sets(events)
    assert (found.sets, found.victims, found.most) == (3, 4, 1)


@pytest.mark.parametrize("how", ["stop", "suspend"])
def test_a_second_set_while_the_first_is_leaving_is_one_too_many(how: str) -> None:
    first = told("urgent", "v", how=how)
    found = victim_sets([first, leaves("v"), event("job.waiting", job="v"), told("urgent", "x")])
    assert (found.sets, found.most) == (2, 2 if how == "stop" else 1), "who is suspended has left"


def test_what_is_wrong_is_a_failure() -> None:
    finding = {"event": 7, "text": "overbooked"}
    second = victim_sets([told("urgent", "v"), told("urgent", "x")])
    assert failure_of([], [], CLEAN) is None
    assert failure_of([finding], ["p"], second) == "1 findings, first: event 7: overbooked"
    assert failure_of([], ["p"], second) == "1 proposals without an answer, first: p"
    assert failure_of([], [], second) == "two sets of jobs were told at one time to make room for one"
