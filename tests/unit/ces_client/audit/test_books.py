"""The auditor finds every kind of lie: each test tells one and expects it to be found."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from audit_logs import (
    INVENTORY,
    LOST,
    START,
    WHOLE,
    Fact,
    allocation,
    asked,
    audit,
    done,
    findings,
    found,
    job,
    node,
    numbered,
    plan,
    ready,
    started,
    waiting,
)

from ces_client.audit import Finding, Inventory, JobRequest


def test_a_right_log_has_nothing_wrong() -> None:
    assert found(WHOLE) == ""
    assert found([*START, *started(), *LOST, *started(2), *done(2)]) == ""


def test_a_log_of_a_former_version_is_judged_alike() -> None:
    def former(fact: Fact) -> Fact:
        kind, data = copy.deepcopy(fact)
        for flow in data.get("flows", []):
            flow["bandwidth"] = flow.pop("rate")
        return kind, data

    assert found(list(map(former, WHOLE))) == ""
    assert "outside of 1 to 99" in found(list(map(former, [*START, plan(rate=100)])))


def test_a_gang_that_restarts_in_place() -> None:
    again = [allocation(i, "pending", "running", 2) for i in (0, 1)]
    running = [allocation(i, "running", "pending", 2) for i in (0, 1)]
    ends = [allocation(i, "succeeded", "running", 2) for i in (0, 1)]
    story = [*again, job("starting", "running"), *running, job("running", "starting"), *ends]
    assert found([*START, *started(), *story, job("succeeded", "running")]) == ""


def kinds(facts: list[Fact], inventory: Inventory = INVENTORY) -> set[str]:
    return {finding.kind for finding in findings(facts, inventory)}


def test_what_is_not_released_is_found_where_nothing_runs_any_more() -> None:
    facts = [*START, *started()]
    assert findings(facts, finished=False) == ()
    assert "job j ends running" in found(facts)
    assert "still holds 1 flows" in found(facts)
    assert "allocation j10 (t-0) ends running" in found(facts)
    assert kinds(facts) == {"held"}


@pytest.mark.parametrize("at", range(2, len(WHOLE) - 1))
def test_no_event_can_be_missing(at: int) -> None:
    verdict = audit([event for event in numbered(WHOLE) if event["sequence"] != at], INVENTORY)
    assert any(finding.kind == "log" and "gap" in finding.text for finding in verdict.findings)


@pytest.mark.parametrize("at", range(len(START) - 1, len(WHOLE)))
def test_no_step_can_be_left_out_or_taken_twice(at: int) -> None:
    assert found([*WHOLE[:at], *WHOLE[at + 1 :]]) != ""
    assert found([*WHOLE[:at], WHOLE[at], *copy.deepcopy(WHOLE[at:])]) != ""


def test_a_step_that_there_is_not_is_found() -> None:
    assert findings([*START, job("running", "queued")], finished=False) == (
        Finding(6, "step", "job j goes from queued to running", job="j"),
    )


def test_an_event_that_says_two_things_is_found() -> None:
    _, data = job("planned", "queued")
    assert "says job.running and planned" in found([*START, plan(), ("job.running", data)])
    assert "log" in kinds([*START, plan(), ("job.running", data)])


def test_what_a_lost_worker_holds_is_not_given_away_before_it_is_sure() -> None:
    early = [job("rescheduling", "running"), job("queued", "rescheduling", 2), *started(2)]
    text = found([*START, *started(), *early])
    assert "queues again while something of it is live" in text
    assert "planned while something of it is live" in text
    assert "10.0.0.2:1, which is in use" in text
    assert "cpu of node a: 1200 of 1000 is overbooked" in text


def test_a_task_that_runs_twice_is_found() -> None:
    early = [job("rescheduling", "running"), job("queued", "rescheduling", 2), *started(2, nodes="ba")]
    facts = [*ready("a", "b"), *START[-1:], *started(), *early]
    assert "allocation j20 (t-0 on b) runs while t-0 of job j runs on a, too" in found(facts)
    assert "twice" in kinds(facts)


def test_a_plan_that_is_not_the_jobs_is_found() -> None:
    other = Inventory(links={}, jobs={"j": JobRequest({"t-0": (1, 1, 0), "t-9": (1, 1, 0)})})
    text = found(WHOLE, other)
    assert "asks for ['t-0', 't-9'], the plan has ['t-0', 't-1']" in text
    assert "which is no link" in text
    assert kinds(WHOLE, other) == {"request", "flow-path"}
    assert "outside of 1 to 99" in found([*START, plan(rate=100)])


def test_work_for_a_silent_cordoned_or_reclaimed_node_is_found() -> None:
    assert "node b gets work while unreachable" in found([*START, node("b", "unreachable"), *started()])
    assert "cordoned True" in found([*START, node("b", "cordoned"), *started()])
    assert "reclaimed True" in found([*START, node("b", "reclaimed"), *started()])
    assert found([*START, node("b", "cordoned"), node("b", "uncordoned"), *started(), *done()]) == ""
    assert found([*START, node("b", "reclaimed"), node("b", "lent"), *started(), *done()]) == ""


def test_a_node_of_a_forgotten_ones_name_begins_anew() -> None:
    gone = [*START, node("b", "drained"), node("b", "forgotten")]
    assert "node b has never joined" in found([*gone, *started()])
    assert found([*gone, *ready("b"), *started(), *done()]) == ""


def revised(cause: str, bandwidth: int, number: int = 1) -> Fact:
    """The flow of job j, as it is now."""
    flow = {"number": number, "src": "t-0", "dst": "t-1", "min": 1, "max": 99, "path": ["a", "b"]}
    data = {"revision": f"r{cause}{bandwidth}", "job": "j", "attempt": 1, "cause": cause}
    short = [{"src": "t-0", "dst": "t-1", "min": 1, "rate": 0}] if not bandwidth else []
    return "plan.revised", data | {"flows": [flow | {"rate": bandwidth}], "short": short}


RUNS = [*START, *started()]


SUSPENDED = [*RUNS, revised("suspended", 0), job("suspended", "running")]


OTHER = [job("queued", None, name="k"), *started(name="k", number=2, rate=90)]


BIG = replace(INVENTORY, jobs={name: asked((600, 10, 0), (600, 10, 0)) for name in "jk"})


def test_what_a_suspended_job_gives_up_another_may_have() -> None:
    resumed = [revised("resumed", 50), job("running", "suspended")]
    assert found([*SUSPENDED, *OTHER, *done(name="k"), *resumed, *done()], BIG) == ""
    early = found([*SUSPENDED, *OTHER, *resumed, *done(), *done(name="k")], BIG)
    assert "link a -> b: 140 of 100 is overbooked" in early
    assert "cpu of node a: 1200 of 1000 is overbooked" in early


def test_a_suspended_job_keeps_its_memory() -> None:
    full = replace(INVENTORY, jobs={name: asked((600, 60, 0), (600, 60, 0)) for name in "jk"})
    text = found([*SUSPENDED, *OTHER], full)
    assert "memory of node a: 120 of 100 is overbooked" in text
    assert "cpu of node" not in text
    ended = [
        job("cancelled", "suspended"),
        *(allocation(i, "stopping", "running") for i in (0, 1)),
        *(allocation(i, "stopped", "stopping") for i in (0, 1)),
    ]
    assert found([*SUSPENDED, *ended, *OTHER, *done(name="k")], full) == ""


def test_a_suspended_job_takes_no_more_than_it_had() -> None:
    """Ending while it is suspended it gives back only what it still holds."""
    ended = [job("rescheduling", "suspended"), *(allocation(i, "lost", "running") for i in (0, 1))]
    third = [job("queued", None, name="l"), *started(name="l", number=3)]
    inventory = replace(BIG, jobs={name: asked((600, 10, 0), (600, 10, 0)) for name in "jkl"})
    text = found([*SUSPENDED, *ended, job("queued", "rescheduling", 2), *OTHER, *third], inventory)
    assert "cpu of node a: 1200 of 1000 is overbooked" in text


def test_a_job_is_suspended_only_where_its_file_lets_it_be() -> None:
    resumed = [revised("resumed", 50), job("running", "suspended"), *done()]
    for lets, wrong in ((True, False), (None, False), (False, True)):
        inventory = replace(INVENTORY, jobs={"j": replace(INVENTORY.jobs["j"], suspendable=lets)})
        text = found([*SUSPENDED, *resumed], inventory)
        assert ("job j is suspended, and its file does not let it be" in text) is wrong
        assert wrong or text == ""


def test_a_suspended_jobs_flows_have_nothing_until_it_goes_on() -> None:
    assert "is suspended while its flows have bandwidth" in found([*RUNS, job("suspended", "running")])
    assert "revised while it is suspended" in found([*SUSPENDED, revised("room", 50)])


def test_a_suspended_job_may_wait_and_its_workers_may_start_again() -> None:
    again = [allocation(0, "pending", "running", 2), revised("resumed", 50), job("running", "suspended")]
    story = [waiting("2026-01-01T01:00:00+00:00"), *again, allocation(0, "running", "pending", 2)]
    assert found([*SUSPENDED, *story, *done(1)[1:]], INVENTORY) != "", "one task has not ended"
    ends = [allocation(0, "succeeded", "running", 2), *done()[1:]]
    assert found([*SUSPENDED, *story, *ends]) == ""


def test_no_step_leads_from_suspended_to_what_it_did_not_do() -> None:
    for state in ("starting", "succeeded", "paused", "queued"):
        assert f"goes from suspended to {state}" in found([*SUSPENDED, job(state, "suspended")])


def test_findings_say_what_they_are_about() -> None:
    small = replace(INVENTORY, links={("a", "b"): 52})
    (over,) = findings(WHOLE, small)
    assert (over.job, over.node, over.link) == ("j", None, "a>b")
    (narrow,) = findings(WHOLE, replace(INVENTORY, media={"air": 52}, medium_of={("a", "b"): "air"}))
    assert (narrow.job, narrow.node, narrow.link) == ("j", None, None)
    left = findings([*START, *started()])
    assert [(each.kind, each.job, each.node) for each in left] == [
        ("held", "j", None), ("held", "j", None), ("held", "j", "a"), ("held", "j", "b")
    ]  # fmt: skip
    torn = numbered(WHOLE)
    del torn[7]
    gap = audit(torn, INVENTORY).findings[0]
    assert (gap.kind, gap.event, gap.job, gap.node) == ("log", 9, None, None), "what comes after it is not its cause"
