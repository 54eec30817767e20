"""CES-Multi, cycle by cycle: who starts, what tenants may have, and what the others are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from queue_desk import PLAIN, Desk, one_node, queued, solve, started, wants

from ces_core.model.errors import ProblemError
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.cycle import cycle
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.queue.state import State


def test_what_takes_less_goes_first_and_the_parts_of_the_score_say_so() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    decided = desk.at(
        0, wants(cluster, "long", 6, lasts=40), wants(cluster, "large", 8), wants(cluster, "small", 2, lasts=5)
    )
    assert started(decided) == ["small", "large"]
    first, second = decided.starts
    assert first.score.fit > second.score.fit
    assert first.score.scarce == "cpu"
    assert first.score.total == first.score.fit + first.score.priority + first.score.waiting + first.score.share
    assert queued(decided) == ["long"]


def test_the_scarce_resource_is_what_a_job_is_measured_by() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    desk.run(wants(cluster, "hog", 1, memory=90))
    decided = desk.at(1, wants(cluster, "thirsty", 1, memory=8), wants(cluster, "busy", 6, memory=1))
    assert started(decided) == ["busy", "thirsty"]
    assert [start.score.scarce for start in decided.starts] == ["cpu", "memory"]


def test_priority_and_waiting_raise_a_job() -> None:
    cluster = one_node(5)
    jobs = [wants(cluster, "usual", 4, lasts=9), wants(cluster, "other", 4)]
    assert started(Desk(cluster).at(0, *jobs)) == ["usual"]
    urgent = [jobs[0], replace(jobs[1], priority=90)]
    assert started(Desk(cluster).at(0, *urgent)) == ["other"]
    late = [replace(jobs[0], submitted_s=40), jobs[1]]
    assert started(Desk(cluster).at(40, *late)) == ["other"]
    weightless = replace(PLAIN, priority=0, waiting=0)
    assert started(Desk(cluster, weightless).at(0, *urgent)) == ["usual"]


def test_a_flood_of_one_tenant_holds_up_nobody_elses_first_job() -> None:
    cluster = one_node()
    desk = Desk(cluster, replace(PLAIN, bound_s=1e6))
    desk.at(0, *(wants(cluster, f"flood{i}", 5, tenant="flood", priority=100) for i in range(500)))
    desk.at(1, wants(cluster, "first", 5, submitted=1, lasts=500, tenant="small", priority=0))
    desk.end(desk.running[0].name)
    assert started(desk.at(10)) == ["first"]


@pytest.mark.parametrize(
    ("few", "fits", "window", "first"),
    [
        (3, True, 4, "short0"),
        (4, True, 4, "first"),
        (4, False, 4, "first"),  # with no room for any of them, nothing stands before it
        (50, True, None, "short0"),  # everybody is tried
    ],
)
def test_a_first_job_goes_by_its_score_unless_others_would_use_up_the_window(
    few: int, fits: bool, window: int | None, first: str
) -> None:
    cluster = one_node()
    desk = Desk(cluster, replace(PLAIN, bound_s=1e6, window=window))
    desk.run(wants(cluster, "running", 5, tenant="usual", lasts=99))
    cpu = 5 if fits else 6
    jobs = [wants(cluster, f"short{i}", cpu, tenant="usual", lasts=1) for i in range(few)]
    assert started(desk.at(1, wants(cluster, "first", 5, lasts=500, tenant="small"), *jobs)) == [first]


def test_a_tenants_own_flood_does_not_carry_its_first_job() -> None:
    cluster = one_node()
    desk = Desk(cluster, replace(PLAIN, bound_s=1e6, window=4))
    desk.run(wants(cluster, "running", 5, tenant="usual", lasts=99))
    own = [wants(cluster, f"own{i}", 5, tenant="small", lasts=500) for i in range(9)]
    assert started(desk.at(1, wants(cluster, "short", 5, lasts=1, tenant="usual"), *own)) == ["short"]


def test_shares_follow_the_weights() -> None:
    cluster = one_node(12)
    tenants = (Tenant("one"), Tenant("two", weight=2))
    desk = Desk(cluster, Parameters(bound_s=1e6, share=10, window=None, tenants=tenants))
    jobs = [wants(cluster, f"{tenant}{i}", 1, tenant=tenant) for tenant in ("one", "two") for i in range(20)]
    desk.at(0, *jobs)
    count = [sum(job.tenant == tenant for job in desk.running) for tenant in ("one", "two")]
    assert count == [4, 8]


def test_what_is_guaranteed_does_not_count_against_a_tenant() -> None:
    cluster = one_node(12)
    tenants = (Tenant("sure", guaranteed={"cpu": 0.5}), Tenant("other"))
    desk = Desk(cluster, Parameters(bound_s=1e6, share=10, window=None, tenants=tenants))
    jobs = [wants(cluster, f"{tenant}{i}", 1, tenant=tenant) for tenant in ("sure", "other") for i in range(20)]
    desk.at(0, *jobs)
    assert sum(job.tenant == "sure" for job in desk.running) == 9  # half of it, and half of the rest


def test_a_quota_is_kept_and_named() -> None:
    cluster = one_node()
    desk = Desk(cluster, replace(PLAIN, tenants=(Tenant("t", quota={"cpu": 0.5}), Tenant("u"))))
    decided = desk.at(
        0, *(wants(cluster, f"j{i}", 3, tenant="t") for i in range(2)), wants(cluster, "k", 6, tenant="t")
    )
    assert len(started(decided)) == 1
    told = {queue_status.job: queue_status for queue_status in decided.queue}
    assert "the quota of tenant t leaves 2 cpu, the job needs 3 cpu" in {each.text() for each in decided.queue}
    assert told["k"].reason is not None
    assert told["k"].reason.permanent
    assert decided.refused["k"].code == "quota"
    assert started(desk.at(1, wants(cluster, "other", 7, tenant="u"))) == ["other"]


def test_a_quota_of_bandwidth_counts_every_link_of_the_way() -> None:
    cluster = Cluster.make([Node("a", cpu=1), Node("b", cpu=1)], [Link("a", "b", 10), Link("b", "a", 10)])
    problem = Problem.make(cluster, [Task("x", cpu=1), Task("y", cpu=1)], [Flow("x", "y", 6, 10)])
    desk = Desk(cluster, replace(PLAIN, tenants=(Tenant("t", quota={"bandwidth": 0.25}),)))
    decided = desk.at(0, WaitingJob("j", problem, 0, tenant="t"))
    assert started(decided) == []
    assert decided.refused["j"].resource == "bandwidth"


def test_the_order_in_which_jobs_are_listed_changes_nothing() -> None:
    cluster = one_node()
    jobs = [wants(cluster, f"j{i}", 1 + i % 4, submitted=i % 3, lasts=5 + i % 5) for i in range(12)]
    runs = []
    for order in (jobs, jobs[::-1]):
        decided = Desk(cluster).at(3, *order)
        runs.append((started(decided), [(each.job, each.position, each.score) for each in decided.queue]))
    assert runs[0] == runs[1]
    assert [position for _, position, _ in runs[0][1]] == list(range(1, len(runs[0][1]) + 1))


def test_the_queue_says_why_and_until_when() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    desk.run(wants(cluster, "a", 6, lasts=20))
    desk.run(wants(cluster, "b", 3, lasts=90))
    decided = desk.at(5, wants(cluster, "next", 7, submitted=5), wants(cluster, "never", 11, submitted=5))
    told: dict[str, Sequence[object]] = {
        each.job: (each.reason and each.reason.code, each.start_s, each.held_by) for each in decided.queue
    }
    assert told == {"next": ("cpu-per-node", 20, ("a",)), "never": ("cpu-per-node", None, ())}
    assert decided.refused.keys() == {"never"}
    assert decided.queue[0].to_dict()["score"]["total"] == decided.queue[0].score.total


def test_the_state_is_left_as_it_is() -> None:
    cluster = one_node()
    ledger = Ledger(cluster)
    job = wants(cluster, "j", 3)
    decided = cycle(State(0, ledger, [job], [], 0), PLAIN, solve)
    assert started(decided) == ["j"]
    assert ledger.jobs == ()
    assert np.array_equal(ledger.cluster.node_used, cluster.node_used)


@pytest.mark.parametrize(
    ("make", "field", "remedy"),
    [
        (lambda: Parameters(fit=-1), "fit", "0 takes it out"),
        (lambda: Parameters(priority=float("nan")), "priority", "0 or more"),
        (lambda: Parameters(waiting=-0.1), "waiting", "0 or more"),
        (lambda: Parameters(share=float("inf")), "share", "0 or more"),
        (lambda: Parameters(window=0), "window", "at least 1"),
        (lambda: Parameters(bound_s=0), "bound_s", "above 0"),
        (lambda: Parameters(overdue=1.5), "overdue", "0 to 1"),
        (lambda: Parameters(reservations=-1), "reservations", "0 keeps room for nobody"),
        (lambda: Parameters(crowded=2), "crowded", "0 to 1"),
        (lambda: Tenant("t", weight=0), "tenants.t.weight", "leave it out for 1"),
        (lambda: Tenant("t", quota={"disk": 0.5}), "tenants.t.quota.disk", "cpu, memory, gpu, bandwidth"),
        (lambda: Tenant("t", quota={"cpu": 2}), "tenants.t.quota.cpu", "0 to 1"),
        (
            lambda: Tenant("t", guaranteed={"cpu": 0.6}, quota={"cpu": 0.5}),
            "tenants.t.guaranteed.cpu",
            "raise the quota",
        ),
        (lambda: Parameters(tenants=[Tenant("t"), Tenant("t")]), "tenants.t", "one place"),
        (
            lambda: Parameters(tenants=[Tenant("t", guaranteed={"gpu": 0.6}), Tenant("u", guaranteed={"gpu": 0.6})]),
            "tenants.guaranteed.gpu",
            "1 at most",
        ),
        (lambda: wants(one_node(), "j", 1, priority=101), "job.priority", "0..100"),
        (lambda: wants(one_node(), "j", 1, lasts=-1), "job.expected_s", "leave it out"),
        (lambda: wants(one_node(), "j", 1, submitted=float("nan")), "job.submitted_s", "a time"),
        (
            lambda: Desk(one_node(), Parameters(tenants=[Tenant("t")])).at(0, wants(one_node(), "j", 1, tenant="who")),
            "job.tenant",
            "add it to tenants",
        ),
    ],
)
def test_what_makes_no_sense_is_named_with_its_remedy(make: object, field: str, remedy: str) -> None:
    assert callable(make)
    with pytest.raises(ProblemError) as caught:
        make()
    assert caught.value.field == field
    assert remedy in caught.value.message
