"""How often each promise was checked, and that a log read in parts is judged as if it were read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from audit_logs import INVENTORY, LOST, START, WHOLE, Fact, audit, done, job, node, numbered, started, waiting

from ces_client.audit import NOT_CHECKED, PROMISES, Books, Inventory, Verdict, verdict_of
from ces_client.audit_inputs import judge_more

# Of a job of two tasks and a flow between them, on two nodes, from its submission to its end.
ONCE = {
    "node-capacity": 4,  # CPU and memory of each node
    "gpu-card": 0,
    "link-capacity": 1,
    "flow-rate": 1,
    "flow-path": 1,
    "request": 1,
    "twice": 3,  # its plan, and two tasks that begin to run
    "node-ready": 2,
    "address": 3,  # of two workers, and the flow's number
    "step": 13,  # six of the job, three of each task, and the plan
    "reservation": 0,
    "deadline": 0,
    "held": 0,
    "log": len(WHOLE),
}
TWICE = {promise: 2 * number for promise, number in ONCE.items()}


def checked(facts: Sequence[Fact], inventory: Inventory = INVENTORY, *, finished: bool = False) -> dict[str, int]:
    return dict(audit(numbered(facts), inventory, finished=finished).checked)


def test_each_check_is_counted_once() -> None:
    assert list(ONCE) == list(PROMISES)
    assert checked(WHOLE) == ONCE
    assert checked([]) == dict.fromkeys(PROMISES, 0)


def test_a_job_that_is_placed_again_is_checked_again() -> None:
    again = [*START, *started(), *LOST, *started(2), *done(2)]
    more = {"twice": 7, "step": 13 + 14, "log": len(again)}  # it returned to the queue
    nodes = {"node-capacity": 8, "node-ready": 4}
    flows = {"link-capacity": 2, "flow-rate": 2, "flow-path": 2, "address": 6, "request": 2}
    assert checked(again) == ONCE | more | nodes | flows


def test_what_is_over_is_checked_where_the_cluster_is_idle() -> None:
    assert checked(WHOLE, finished=True) == ONCE | {"held": 3}  # the job and two tasks


def test_what_is_not_known_is_not_counted_as_checked() -> None:
    late = audit(numbered(WHOLE)[6:], INVENTORY, finished=False).checked
    assert (late["step"], late["log"]) == (0, len(WHOLE) - 6)
    blind = checked(WHOLE, Inventory())
    assert (blind["request"], blind["node-capacity"], blind["link-capacity"]) == (0, 0, 0)
    assert blind["flow-path"] == 1, "its ends are known"


def test_reservations_and_deadlines_are_counted_where_there_are_any() -> None:
    told = [waiting("2026-01-01T00:00:07+00:00"), waiting("2026-01-01T00:00:08+00:00")]
    due = {"job": "j", "deadline_at": "2026-01-01T01:00:00+00:00"}
    refused = ("job.deadline", {**due, "job": "k", "refusal": "too late"})
    facts = [*START, ("job.deadline", due), refused, *told, *started(), *done()]
    found = checked(facts)
    assert (found["reservation"], found["deadline"]) == (2, 2)
    assert found["step"] == ONCE["step"] + len(told)


def in_parts(facts: Sequence[Fact], at: int, inventory: Inventory) -> Verdict:
    """Read up to one event, and then the rest."""
    books, events = Books(inventory), numbered(facts)
    judge_more(books, events[:at], inventory)
    return judge_more(books, events[at:], inventory, finished=True)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_log_that_is_read_in_parts_is_judged_like_one_that_is_read_at_once(wrong: bool) -> None:
    ends = [] if wrong else done(2)
    facts = [*START, *started(), *LOST, *started(2), *ends]
    inventory = replace(INVENTORY, links={("a", "b"): 52}) if wrong else INVENTORY
    whole = audit(numbered(facts), inventory)
    assert whole.clean is not wrong
    for at in range(len(facts) + 1):
        assert in_parts(facts, at, inventory) == whole


def test_what_comes_later_is_judged_by_what_the_cluster_has_then() -> None:
    """A link that is slower by now was not overbooked before; nodes say themselves what they have."""
    second = [
        node("a", "changed", (2000, 100, 0)),
        job("queued", None, name="k"),
        *started(name="k", number=2, rate=40),
    ]
    events, wide = numbered([*START, *started(), *done(), *second]), INVENTORY
    books = Books(wide)
    assert judge_more(books, events[: len(WHOLE)], wide).clean
    narrow = replace(wide, links={("a", "b"): 41}, nodes={"a": (1, 1, 1)})
    told = judge_more(books, events[len(WHOLE) :], narrow)
    assert [finding.text for finding in told.findings] == ["link a -> b: 40 of 41 is overbooked"]
    assert (told.events, told.first, told.last) == (len(events), 1, len(events))
    assert verdict_of(books, narrow) == told


def test_what_is_promised_is_said_in_whole_sentences() -> None:
    for promise in PROMISES.values():
        assert promise.text[0].isupper()
        assert promise.text.endswith(".")
        assert promise.checked.startswith("each ")
    assert all(what.endswith(".") for what in NOT_CHECKED)
