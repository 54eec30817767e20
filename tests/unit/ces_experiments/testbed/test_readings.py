"""What the experiment reads off a run: the plan, what its flows had, its training, and why it came to nothing."""

from __future__ import annotations

import pytest
from experiment_runs import MBIT, NOW, flow, flows_view, job_view, log, plan_of

from ces_common.messages.api import FlowSample, FlowView, PlanView
from ces_common.states import JobState
from ces_experiments.testbed import scenario as scenarios
from ces_experiments.testbed.readings import Planned, carried, delivered, promised, record, thinned, trained
from ces_experiments.testbed.trial import enforced, failure


def test_a_plan_is_judged_by_what_was_asked_for() -> None:
    job = scenarios.training(1, "ring", 0.9)
    asked = job.expand_flows()
    given = [asked[0].max, asked[1].min // 2, asked[2].min, (asked[3].min + asked[3].max) / 2, asked[4].max]
    paths = [["a"], ["a", "b"], ["a", "b"], ["b", "s", "c"], ["c", "a"]]
    flows = [
        FlowView(src=each.src, dst=each.dst, min=0, max=each.max, rate=int(rate), path=path)
        for each, rate, path in zip(asked, given, paths, strict=True)
    ]
    metrics = {"load_imbalance": 0.2, "bandwidth_satisfaction": 0.99, "composite": 0.99}
    plan = PlanView(
        plan="p", job="1", attempt=1, solver="x", version=1, committed_at=NOW, metrics=metrics, flows=flows,
        assignments={"worker0-0": "a", "worker1-0": "a", "worker2-0": "b", "worker3-0": "c", "worker4-0": "a"},
    )  # fmt: skip
    found = Planned.of(plan, job)
    assert found.bandwidth_satisfaction == pytest.approx(2.5 / 5)  # below the minimum is nothing, not less
    assert found.composite == pytest.approx(0.5 * 0.8 + 0.5 * 0.5)
    assert (found.local, found.nodes) == (0.2, 3)


def test_what_flows_carried_is_told_by_their_sources() -> None:
    view = flows_view(
        flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1e6, 3e6], [1e6, 1e6]]),
        flow("b", "a", 4 * MBIT, ["n1"], []),
        flow("c", "a", 4 * MBIT, ["n2", "n1"], [[]]),
    )
    [found] = carried(view)
    assert (found.src, found.hops, found.mean, found.most, found.reports) == ("a", 2, 2e6, 3e6, 2)
    assert delivered(view) == pytest.approx(0.25)
    assert delivered(flows_view()) is None


def test_reservations_are_in_force_once_every_link_says_so() -> None:
    kept = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], [1.0]], given=4 * MBIT)
    shared = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], [1.0]], given=0)
    unknown = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], []], given=4 * MBIT)
    local = flow("a", "b", 4 * MBIT, ["n1"], [])
    whole, least = [4 * MBIT] * 2, [0] * 2
    assert [promised(each) for each in (kept, shared, unknown, local)] == [whole, least, None, None]
    assert enforced(flows_view(kept, local), reserve=True)
    assert not enforced(flows_view(kept, shared), reserve=True)
    assert not enforced(flows_view(kept, shared), reserve=False)
    assert enforced(flows_view(shared, local), reserve=False)
    assert not enforced(flows_view(unknown), reserve=True)
    assert not enforced(flows_view(unknown), reserve=False)


def test_a_network_of_which_one_link_still_reserves_is_neither() -> None:
    half = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], [1.0]])
    half.hops[0].samples[0] = FlowSample(at=NOW, measured=1.0, rate=0)
    half.hops[1].samples[0] = FlowSample(at=NOW, measured=1.0, rate=4 * MBIT)
    assert not enforced(flows_view(half), reserve=True)
    assert not enforced(flows_view(half), reserve=False)


def test_a_training_is_done_when_its_last_worker_is() -> None:
    found = trained({"w-0": log(3, 4.0), "w-1": log(2, 5.0)})
    assert found is not None
    assert (found.seconds, found.rounds, found.megabytes) == (5.0, 3, 1.0)
    assert found.curve == [(1, 1 / 3), (2, 2 / 3), (3, 1.0)]
    assert found.ended
    assert (found.accuracy, found.best) == (0.9, 1.0)
    assert trained({}) is None


def test_a_training_that_was_cut_has_the_time_that_its_workers_told_of() -> None:
    found = trained({"w-0": log(3, 4.0), "w-1": log(7, 5.0, over=False), "w-2": iter(["", '{"progress": {"rou'])})
    assert found is not None
    assert not found.ended
    assert (found.seconds, found.rounds, found.best, len(found.curve)) == (7.0, 7, 1.0, 3)
    assert trained({"w-0": iter(["words", '{"progress": {"rou']), "w-1": iter([])}) is None


def test_a_job_that_came_to_nothing_is_told_with_its_reason() -> None:
    whole, cut = trained({"w-0": log(3, 4.0)}), trained({"w-0": log(3, 4.0, over=False)})
    assert failure(job_view(JobState.SUCCEEDED), whole, ran=False) is None
    assert failure(job_view(JobState.CANCELLED), cut, ran=True) is None
    assert failure(job_view(JobState.CANCELLED), None, ran=True) is None
    assert failure(job_view(JobState.FAILED, "worker 1 ended with 1"), cut, ran=True) == "worker 1 ended with 1"
    assert "not all started" in str(failure(job_view(JobState.CANCELLED), None, ran=False))
    assert "log" in str(failure(job_view(JobState.SUCCEEDED), cut, ran=True))


def test_a_failed_job_is_kept_as_placed_without_a_training() -> None:
    job = scenarios.training(1, "ring", 0.9)
    plan = plan_of(job)
    cut = trained({"w-0": log(3, 4.0, over=False)})
    lost = record(plan, job, None, cut, None, "a worker ended")
    assert (lost["placed"], lost["training"], lost["failed"]) == (True, None, "a worker ended")
    assert record(plan, job, None, cut, None, None)["training"]["curve"] == [(1, 1 / 3), (2, 2 / 3), (3, 1.0)]


def test_a_long_curve_keeps_its_ends() -> None:
    points = [(float(i), i / 1000) for i in range(1000)]
    kept = thinned(points, 40)
    assert len(kept) == 40
    assert (kept[0], kept[-1]) == (points[0], points[-1])
