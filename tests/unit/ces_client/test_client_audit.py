"""The auditor must see what it is there for: each test tells one lie and expects it to be found."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from audit_logs import (
    GROUND,
    LOST,
    START,
    WHOLE,
    Fact,
    allocation,
    asked,
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
from hypothesis import given
from hypothesis import strategies as st

from ces_client.audit import Amounts, Asked, Finding, Ground, audit


def kinds(facts: list[Fact], ground: Ground = GROUND) -> set[str]:
    return {finding.kind for finding in findings(facts, ground)}


def test_a_right_log_has_nothing_wrong() -> None:
    assert found(WHOLE) == ""
    assert found([*START, *started(), *LOST, *started(2), *done(2)]) == ""


def test_a_gang_that_restarts_in_place() -> None:
    again = [allocation(i, "pending", "running", 2) for i in (0, 1)]
    running = [allocation(i, "running", "pending", 2) for i in (0, 1)]
    ends = [allocation(i, "succeeded", "running", 2) for i in (0, 1)]
    story = [*again, job("starting", "running"), *running, job("running", "starting"), *ends]
    assert found([*START, *started(), *story, job("succeeded", "running")]) == ""


def test_what_is_not_released_is_found_where_nothing_runs_any_more() -> None:
    facts = [*START, *started()]
    assert findings(facts, finished=False) == ()
    assert "job j ends running" in found(facts)
    assert "still holds 1 flows" in found(facts)
    assert "allocation j10 (t-0) ends running" in found(facts)
    assert kinds(facts) == {"held"}


@pytest.mark.parametrize("at", range(2, len(WHOLE) - 1))
def test_no_event_can_be_missing(at: int) -> None:
    verdict = audit([event for event in numbered(WHOLE) if event["sequence"] != at], GROUND)
    assert any(finding.kind == "log" and "gap" in finding.text for finding in verdict.findings)


@pytest.mark.parametrize("at", range(len(START) - 1, len(WHOLE)))
def test_no_step_can_be_left_out_or_taken_twice(at: int) -> None:
    assert found([*WHOLE[:at], *WHOLE[at + 1 :]]) != ""
    assert found([*WHOLE[:at], WHOLE[at], *copy.deepcopy(WHOLE[at:])]) != ""


def test_a_step_that_there_is_not_is_found() -> None:
    assert findings([*START, job("running", "queued")], finished=False) == (
        Finding(6, "step", "job j goes from queued to running"),
    )


def test_an_event_that_says_two_things_is_found() -> None:
    _, data = job("planned", "queued")
    assert "says job.running and planned" in found([*START, plan(), ("job.running", data)])
    assert "log" in kinds([*START, plan(), ("job.running", data)])


def test_what_is_overbooked_is_found() -> None:
    small = replace(GROUND, links={("a", "b"): 52})
    assert "link a -> b: 50 of 52 is overbooked" in found(WHOLE, small)
    shared = replace(GROUND, media={"air": 52}, medium_of={("a", "b"): "air"})
    assert "medium air: 50 of 52 is overbooked" in found(WHOLE, shared)
    wide = replace(shared, media={"air": 55})
    assert found(WHOLE, wide) == ""
    assert "medium air: 50 of 55 is overbooked" in found(WHOLE, replace(wide, tunnelled={"air"}))
    big = replace(GROUND, jobs={"j": asked((1001, 10, 0), (600, 10, 0))})
    assert "cpu of node a: 1001 of 1000 is overbooked" in found(WHOLE, big)
    assert kinds(WHOLE, small) == kinds(WHOLE, big) == {"overbooked"}


def test_what_is_freed_in_between_can_be_given_away_again() -> None:
    ground = replace(GROUND, jobs={name: asked((600, 10, 0), (600, 10, 0)) for name in "jk"})
    second = [job("queued", None, name="k"), *started(name="k", number=2)]
    assert found([*WHOLE, *second, *done(name="k")], ground) == ""
    both = [*START, *started(), *second]
    assert {"cpu of node a: 1200 of 1000 is overbooked", "link a -> b: 100 of 100 is overbooked"} <= {
        finding.text for finding in findings(both, ground)
    }


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
    other = Ground(links={}, jobs={"j": Asked({"t-0": (1, 1, 0), "t-9": (1, 1, 0)})})
    text = found(WHOLE, other)
    assert "asks for ['t-0', 't-9'], the plan has ['t-0', 't-1']" in text
    assert "which is no link" in text
    assert kinds(WHOLE, other) == {"plan"}
    assert "outside of 1 to 99" in found([*START, plan(bandwidth=100)])


def test_work_for_a_silent_or_cordoned_node_is_found() -> None:
    assert "node b gets work while unreachable" in found([*START, node("b", "unreachable"), *started()])
    assert "cordoned True" in found([*START, node("b", "cordoned"), *started()])
    assert found([*START, node("b", "cordoned"), node("b", "uncordoned"), *started(), *done()]) == ""


class TestPromises:
    """j is promised a start while k runs, which says that it runs for 15 s, and holds its place for as many."""

    GROUND = replace(GROUND, jobs={"j": GROUND.jobs["j"], "k": asked((600, 10, 0), (600, 10, 0), expected_s=15)})
    OTHERS = [*ready("a", "b"), job("queued", None, name="k"), *started(name="k", number=2)]  # its plan: event 6
    SOON = "2026-01-01T00:00:19+00:00"

    def story(self, *meanwhile: Fact, start_at: str = SOON, late: int = 0) -> list[Fact]:
        quiet: Fact = ("network.ready", {})
        facts = [*self.OTHERS, job("queued", None), waiting(start_at), *meanwhile, *done(name="k")]
        return [*facts, *[quiet] * late, *started(), *done()]

    def test_a_start_in_time_is_as_promised(self) -> None:
        assert found(self.story(), self.GROUND) == ""
        assert found(self.story(late=4), self.GROUND) == ""  # a manager takes its time

    def test_a_later_one_is_found(self) -> None:
        (finding,) = findings(self.story(late=20), self.GROUND)
        assert finding.kind == "promise"
        assert "job j starts 21.0 s later than event 16 promised" in finding.text

    def test_whoever_overruns_what_it_said_excuses_it(self) -> None:
        short = replace(self.GROUND, jobs=self.GROUND.jobs | {"k": replace(self.GROUND.jobs["k"], expected_s=5)})
        assert found(self.story(late=20), short) == ""
        unknown = replace(self.GROUND, jobs={"j": self.GROUND.jobs["j"]})
        assert found(self.story(late=20), unknown) == ""

    def test_whoever_says_nothing_does_not(self) -> None:
        endless = replace(self.GROUND, jobs=self.GROUND.jobs | {"k": replace(self.GROUND.jobs["k"], expected_s=None)})
        assert "promised" in found(self.story(late=20), endless)

    def test_a_change_of_the_cluster_excuses_it(self) -> None:
        assert found(self.story(node("c", "joined"), late=20), self.GROUND) == ""
        before = [node("c", "joined"), *self.story(start_at="2026-01-01T00:00:20+00:00", late=20)]
        assert "promised" in found(before, self.GROUND)


class TestLateLogs:
    """The first events of a log are dropped for their age."""

    def verdict(self, first: int, facts: list[Fact] = WHOLE, ground: Ground = GROUND):
        return audit([event for event in numbered(facts) if event["sequence"] >= first], ground)

    @pytest.mark.parametrize("first", range(len(START) + 1, len(WHOLE) + 1))
    def test_what_began_before_is_not_judged_and_that_is_said(self, first: int) -> None:
        verdict = self.verdict(first)
        assert verdict.findings == ()
        assert verdict.unjudged == (
            f"the log begins with event {first}; 1 jobs began before it: what began before is not judged",
        )

    def test_what_begins_in_it_is(self) -> None:
        ground = replace(GROUND, nodes={"a": (500, 100, 0), "b": (1000, 100, 0)})
        verdict = self.verdict(len(START), ground=ground)
        assert [finding.text for finding in verdict.findings] == ["cpu of node a: 600 of 500 is overbooked"]
        again = [*START, *started(), *LOST, *started(2)]
        verdict = self.verdict(len(START) + 5, [*again, *done(2)], ground)
        assert [finding.text for finding in verdict.findings] == ["cpu of node a: 600 of 500 is overbooked"]


def test_the_highest_use_is_told_with_its_time() -> None:
    verdict = audit(numbered(WHOLE), GROUND)
    assert (verdict.events, verdict.plans, verdict.jobs, verdict.held) == (len(WHOLE), 1, {"succeeded": 1}, 0)
    peaks = {peak.what: (peak.where, peak.used, peak.capacity, peak.event, peak.time) for peak in verdict.peaks}
    when = (6, "2026-01-01T00:00:06+00:00")
    assert peaks == {
        "cpu": ("a", 600, 1000, *when),
        "memory": ("a", 10, 100, *when),
        "link": ("a -> b", 50, 100, *when),
    }


def test_what_nobody_knows_is_not_judged_and_that_is_said() -> None:
    verdict = audit(numbered(WHOLE), Ground())
    assert verdict.clean
    assert verdict.unjudged == (
        "links and media: the topology is not known",
        "CPU, memory and GPUs of 1 jobs: what their tasks asked for is not known",
    )


# Any log with nothing wrong, and what must be found once more is given away in it than there is.

PLACES = "abc"
HOPS = [(a, b) for a in PLACES for b in PLACES if a != b]


@st.composite
def _clean_logs(draw: st.DrawFn) -> tuple[list[Fact], Ground, list[tuple[int, str, int, int]]]:
    """Facts, ground, and for each start: where its plan stands, the job, and what others held then of its first
    node's CPU and of its link."""
    facts, jobs = ready(*PLACES), {}
    cpu, links = dict.fromkeys(PLACES, 0), dict.fromkeys(HOPS, 0)
    runs: dict[str, tuple[str, int, int]] = {}  # job -> nodes, CPU of each task, bandwidth
    starts = []
    for i in range(draw(st.integers(1, 8))):
        for name in draw(st.lists(st.sampled_from(sorted(runs)), unique=True)) if runs else []:
            nodes, amount, rate = runs.pop(name)
            facts += done(name=name, nodes=nodes)
            cpu[nodes[0]] -= amount
            cpu[nodes[1]] -= amount
            links[nodes[0], nodes[1]] -= rate
        name, nodes = f"job{i}", "".join(draw(st.sampled_from(HOPS)))
        amount, rate = draw(st.integers(1, 500)), draw(st.integers(1, 60))
        jobs[name] = asked((amount, 1, 0), (amount, 1, 0))
        facts.append(job("queued", None, name=name))
        others = cpu[nodes[0]], links[nodes[0], nodes[1]]
        if max(cpu[nodes[0]], cpu[nodes[1]]) + amount > 1000 or others[1] + rate > 95:
            facts.append(job("cancelled", "queued", name=name))
            continue
        starts.append((len(facts), name, *others))
        facts += started(name=name, nodes=nodes, bandwidth=rate, number=i + 1)
        runs[name] = nodes, amount, rate
        cpu[nodes[0]] += amount
        cpu[nodes[1]] += amount
        links[nodes[0], nodes[1]] += rate
    for name, (nodes, _, _) in runs.items():
        facts += done(name=name, nodes=nodes)
    return facts, Ground(links=dict.fromkeys(HOPS, 100), jobs=jobs), starts


@given(_clean_logs(), st.data())
def test_whatever_is_given_away_beyond_what_there_is_is_found(log: Any, data: st.DataObject) -> None:
    facts, ground, starts = log
    assert found(facts, ground) == ""
    at, name, others_cpu, others_link = data.draw(st.sampled_from(starts))  # the first job always starts
    if data.draw(st.booleans(), label="a link, not a node"):
        facts = copy.deepcopy(facts)
        flow = facts[at][1]["flows"][0]
        flow["bandwidth"] = flow["max"] = 96 - others_link
        what = f"link {flow['path'][0]} -> {flow['path'][1]}: 96 of 100 is overbooked"
    else:
        amounts: Amounts = (1001 - others_cpu, 1, 0)
        tasks = {**ground.jobs[name].tasks, "t-0": amounts}
        ground = replace(ground, jobs={**ground.jobs, name: Asked(tasks)})
        what = f"cpu of node {facts[at][1]['allocations'][0]['node']}: 1001 of 1000 is overbooked"
    assert Finding(at + 1, "overbooked", what) in findings(facts, ground)


def revised(cause: str, bandwidth: int, number: int = 1) -> Fact:
    """The flow of job j, as it is now."""
    flow = {"number": number, "src": "t-0", "dst": "t-1", "min": 1, "max": 99, "path": ["a", "b"]}
    data = {"revision": f"r{cause}{bandwidth}", "job": "j", "attempt": 1, "cause": cause}
    short = [{"src": "t-0", "dst": "t-1", "min": 1, "bandwidth": 0}] if not bandwidth else []
    return "plan.revised", data | {"flows": [flow | {"bandwidth": bandwidth}], "short": short}


RUNS = [*START, *started()]
SUSPENDED = [*RUNS, revised("suspended", 0), job("suspended", "running")]
OTHER = [job("queued", None, name="k"), *started(name="k", number=2, bandwidth=90)]
BIG = replace(GROUND, jobs={name: asked((600, 10, 0), (600, 10, 0)) for name in "jk"})


def test_what_a_suspended_job_gives_up_another_may_have() -> None:
    resumed = [revised("resumed", 50), job("running", "suspended")]
    assert found([*SUSPENDED, *OTHER, *done(name="k"), *resumed, *done()], BIG) == ""
    early = found([*SUSPENDED, *OTHER, *resumed, *done(), *done(name="k")], BIG)
    assert "link a -> b: 140 of 100 is overbooked" in early
    assert "cpu of node a: 1200 of 1000 is overbooked" in early


def test_a_suspended_job_keeps_its_memory() -> None:
    full = replace(GROUND, jobs={name: asked((600, 60, 0), (600, 60, 0)) for name in "jk"})
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
    ground = replace(BIG, jobs={name: asked((600, 10, 0), (600, 10, 0)) for name in "jkl"})
    text = found([*SUSPENDED, *ended, job("queued", "rescheduling", 2), *OTHER, *third], ground)
    assert "cpu of node a: 1200 of 1000 is overbooked" in text


def test_a_job_is_suspended_only_where_its_file_lets_it_be() -> None:
    resumed = [revised("resumed", 50), job("running", "suspended"), *done()]
    for lets, wrong in ((True, False), (None, False), (False, True)):
        ground = replace(GROUND, jobs={"j": replace(GROUND.jobs["j"], suspendable=lets)})
        text = found([*SUSPENDED, *resumed], ground)
        assert ("job j is suspended, and its file does not let it be" in text) is wrong
        assert wrong or text == ""


def test_a_suspended_jobs_flows_have_nothing_until_it_goes_on() -> None:
    assert "is suspended while its flows have bandwidth" in found([*RUNS, job("suspended", "running")])
    assert "revised while it is suspended" in found([*SUSPENDED, revised("room", 50)])


def test_a_suspended_job_may_wait_and_its_workers_may_start_again() -> None:
    again = [allocation(0, "pending", "running", 2), revised("resumed", 50), job("running", "suspended")]
    story = [waiting("2026-01-01T01:00:00+00:00"), *again, allocation(0, "running", "pending", 2)]
    assert found([*SUSPENDED, *story, *done(1)[1:]], GROUND) != "", "one task has not ended"
    ends = [allocation(0, "succeeded", "running", 2), *done()[1:]]
    assert found([*SUSPENDED, *story, *ends]) == ""


def test_no_step_leads_from_suspended_to_what_it_did_not_do() -> None:
    for state in ("starting", "succeeded", "paused", "queued"):
        assert f"goes from suspended to {state}" in found([*SUSPENDED, job(state, "suspended")])


def test_a_suspension_excuses_promises_made_before_it_and_none_made_after() -> None:
    ends = {"j": replace(GROUND.jobs["j"], expected_s=600), "k": asked((600, 10, 0), (600, 10, 0))}
    ground = replace(GROUND, jobs=ends)
    queued = job("queued", None, name="k")
    promised = waiting("2026-01-01T00:00:02+00:00", "k")
    late = [*started(name="k", number=2, bandwidth=1), *done(name="k")]
    gone = [job("cancelled", "suspended"), *(allocation(i, "lost", "running") for i in (0, 1))]
    before = [*RUNS, queued, promised, *SUSPENDED[len(RUNS) :], *gone, *late]
    assert "promised" not in found(before, ground)
    after = [*SUSPENDED, queued, promised, *gone, *late]
    assert "job k starts" in found(after, ground)
