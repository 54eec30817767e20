"""A waiting job as the core's problem, and the core's answers as messages."""

from collections import Counter
from itertools import pairwise
from typing import Any

from cluster_state import GIB, MBIT, job, node, view_of, wire
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_looks import decided

from ces_common.jobfile import Flow, Task
from ces_common.messages.records import JobRecord
from ces_common.quantities import LARGEST
from ces_core.model.plan import Plan, PlannedFlow
from ces_scheduler.job_problem import barred, flow_plans
from ces_scheduler.offer import Offer, offer_of

LINE = [*wire("a", "s"), *wire("s", "b")]


NODES = [node("b", 3), node("a", 1), node("s", 2, cpu=0, memory=0)]


def task(**fields: object) -> Task:
    return Task.model_validate({"name": "t", "rank": 0, "cpu": 1, "memory": 1} | fields)


def test_switches_are_nobodys_candidates_and_not_mentioned() -> None:
    offer = offer_of(view_of([node("a", cordoned=True), node("s", cpu=0, memory=0, cordoned=True)]))
    assert barred([task()], offer) == {"t": {"a": "cordoned"}}


def test_what_fits_nowhere_is_explained_in_units_for_people() -> None:
    decision = decided(job("q", tasks=1, task={"cpu": 9000}), offer_of(view_of(NODES, LINE)))
    assert decision.reason is not None
    assert (decision.reason.resource, decision.reason.needed, decision.reason.forever) == ("cpu", 9000, True)
    assert "9 cores" in decision.reason.text
    assert "4 cores" in decision.reason.text


def test_a_senseless_job_is_refused_rather_than_the_end_of_scheduling() -> None:
    record = job("q", tasks=2, asked=[(0, 1, 5, 4)])
    decision = decided(record, offer_of(view_of(NODES, LINE)))
    assert decision.reason is not None
    assert decision.reason.code == "impossible"
    assert "min" in decision.reason.text


def test_the_largest_quantities_that_a_file_may_name_are_decided_upon() -> None:
    record = job("q", tasks=2, asked=[(0, 1, 1, LARGEST)], task={"cpu": LARGEST, "memory": LARGEST, "gpu": 64})
    decision = decided(record, offer_of(view_of(NODES, LINE)))
    assert decision.reason is not None
    assert decision.reason.code != "impossible"


def test_bandwidth_is_rounded_down_but_not_below_the_minimum() -> None:
    plan = Plan(
        {"a": "x", "b": "y"},
        (PlannedFlow("a", "b", 9_999_999.9999, ("x", "y")), PlannedFlow("b", "a", 20_000_000.7, ("y", "x"))),
    )
    flows = [Flow(src="a", dst="b", min=10_000_000, max=10**8), Flow(src="b", dst="a", min=1, max=10**8)]
    assert [flow.rate for flow in flow_plans(plan, flows)] == [10_000_000, 20_000_000]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Offer, list[JobRecord]]:
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    nodes = [node(name, i, cpu=draw(st.integers(0, 4)) * 500, memory=2 * GIB) for i, name in enumerate(names)]
    pairs = [(a, b) for a in names for b in names if a < b]
    wires = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    links = [link for a, b in wires for link in wire(a, b, draw(st.integers(1, 99_999_999)))]
    jobs = [
        job(
            f"j{j}",
            tasks=draw(st.integers(1, 4)),
            asked=draw(_flows()),
            task={"cpu": draw(st.integers(1, 1500))},
        )
        for j in range(draw(st.integers(1, 4)))
    ]
    return offer_of(view_of(nodes, links)), jobs


@st.composite
def _flows(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    low = draw(st.integers(1, 10 * MBIT))
    return [(0, 1, low, draw(st.integers(low, 60 * MBIT)))] if draw(st.booleans()) else []


@given(clusters())
@settings(max_examples=60, deadline=None)
def test_no_plan_asks_for_more_than_is_offered(given_: tuple[Offer, list[JobRecord]]) -> None:
    """Not even after several: each takes its usage from the offer of the next, as proposals under way do."""
    offer, jobs = given_
    cluster = offer.cluster
    index = {name: i for i, name in enumerate(cluster.topology.nodes)}
    cpu, links = Counter[str](), Counter[tuple[str, str]]()
    left = offer
    for record in jobs:
        if len(record.tasks) < 2 and record.flows:
            continue
        decision = decided(record, left)
        if decision.decision is None:
            assert decision.reason is not None
            continue
        left = left.less({record.id: decision.decision.cells})
        assert set(decision.assignments) == {each.name for each in record.tasks}
        for each in record.tasks:
            cpu[decision.assignments[each.name]] += each.cpu
        asked = {(flow.src, flow.dst): flow for flow in record.flows}
        assert {(flow.src, flow.dst) for flow in decision.flows} == set(asked)
        for flow in decision.flows:
            limits = asked[flow.src, flow.dst]
            assert limits.min <= flow.rate <= limits.max
            assert (flow.path[0], flow.path[-1]) == (decision.assignments[flow.src], decision.assignments[flow.dst])
            for hop in pairwise(flow.path):
                links[hop] += flow.rate
    for name, total in cpu.items():
        assert total <= cluster.node_capacity[0, index[name]]
    for (src, dst), rate in links.items():
        assert rate <= cluster.link_capacity[cluster.topology.link_index[index[src], index[dst]]]


def reading(*datasets: str) -> JobRecord:
    """A job that waits, and reads data of node a."""
    flow = Flow(src="@a", dst="w-0", min=MBIT, max=20 * MBIT, datasets=list(datasets))
    return job("j", tasks=1).model_copy(update={"flows": [flow]})


def nodes_with(**data: Any) -> list[Any]:
    return [node("b", 3), node("a", 1, **data), node("s", 2, cpu=0, memory=0)]


def test_data_and_the_task_that_reads_it_are_one_decision() -> None:
    offer = offer_of(view_of(nodes_with(datasets=["mnist"]), LINE))
    near = decided(reading("mnist"), offer)
    assert (near.reason, near.flows[0].path[0]) == (None, "a")
    busy = job("other", ["a"], task={"cpu": 4000})
    far = decided(reading("mnist"), offer_of(view_of(nodes_with(datasets=["mnist"]), LINE, [busy])))
    assert far.assignments == {"w-0": "b"}
    assert [(flow.src, flow.path, flow.rate) for flow in far.flows] == [("@a", ["a", "s", "b"], 20 * MBIT)]
