"""What became of proposals, read off a log."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from ces_experiments.control_plane.queue.answers import Proposal, proposal_of, unanswered, victim_sets
from ces_experiments.control_plane.queue.run import failure_of

CLEAN = victim_sets([])
_times = count()


def event(kind: str, at: int | None = None, **data: Any) -> dict[str, Any]:
    return {"type": f"ces.v1.{kind}", "time": f"t{next(_times) if at is None else at}", "data": data}


def told(victim: str, urgent: str, at: int, attempt: int = 1, how: str = "rescheduling") -> dict[str, Any]:
    reason = f"makes room for job {urgent}, whose priority is 80 instead of 50"
    return event(f"job.{how}", at, job=victim, attempt=attempt, reason=reason)


def test_what_was_proposed_is_known_by_its_id() -> None:
    assert proposal_of(event("plan.proposed", plan="p1", job="j")) == Proposal("plan", "p1", "j")
    assert proposal_of(event("revision.proposed", revision="r1", jobs=[])) == Proposal("revision", "r1")
    made = event("preemption.proposed", preemption="x1", job="j", victims=[{"job": "v", "attempt": 2, "how": "stop"}])
    assert proposal_of(made) == Proposal("preemption", "x1", "j", frozenset({("v", 2)}))


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


def test_a_preemption_is_answered_where_it_was_rejected_or_all_its_victims_were_told() -> None:
    proposals = [
        Proposal("preemption", "told", "u", frozenset({("v", 1), ("w", 3)})),
        Proposal("preemption", "rejected", "u", frozenset({("v", 1), ("x", 1)})),
        Proposal("preemption", "lost", "u", frozenset({("v", 2)})),
    ]
    events = [
        told("v", "urgent", 1),
        told("w", "urgent", 1, 3, "suspended"),
        event("preemption.rejected", preemption="rejected"),
    ]
    assert unanswered(proposals, events) == ["lost"]


def test_one_set_of_victims_after_the_other_is_as_it_should_be() -> None:
    events = [
        told("v", "urgent", 1),
        told("w", "urgent", 1),
        event("job.queued", job="v", attempt=2),
        event("job.waiting", job="w"),
        event("job.queued", job="w", attempt=2),
        told("x", "urgent", 2),
        told("y", "other", 3),
    ]
    found = victim_sets(events)
    assert (found.sets, found.victims, found.most) == (3, 4, 1)


@pytest.mark.parametrize("first", ["rescheduling", "suspended"])
def test_a_second_set_while_the_first_is_leaving_is_one_too_many(first: str) -> None:
    found = victim_sets([told("v", "urgent", 1, how=first), event("job.waiting", job="v"), told("x", "urgent", 2)])
    assert (found.sets, found.most) == (2, 2 if first == "rescheduling" else 1), "who is suspended has left"


def test_what_is_wrong_is_a_failure() -> None:
    finding = {"event": 7, "text": "overbooked"}
    second = victim_sets([told("v", "urgent", 1), told("x", "urgent", 2)])
    assert failure_of([], [], CLEAN) is None
    assert failure_of([finding], ["p"], second) == "1 findings, first: event 7: overbooked"
    assert failure_of([], ["p"], second) == "1 proposals without an answer, first: p"
    assert failure_of([], [], second) == "two sets of jobs were told at one time to make room for one"
