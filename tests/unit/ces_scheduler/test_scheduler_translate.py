"""Between the committed state and the core: what is on offer, what is refused, what a decision takes."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from cluster_state import GIB, MBIT, job, node, view_of, wire
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_looks import decided

from ces_common.jobfile import Flow, Task
from ces_common.messages.records import JobRecord, MediumRecord, Snapshot, Topology
from ces_common.quantities import LARGEST
from ces_common.shares import reservable
from ces_common.states import AllocationState
from ces_core.plan import Plan, PlannedFlow
from ces_scheduler.queueing import queued
from ces_scheduler.translate import Offer, flow_plans, offer_of, refusal, refusals

LINE = [*wire("a", "s"), *wire("s", "b")]
NODES = [node("b", 3), node("a", 1), node("s", 2, cpu=0, memory=0)]


def test_an_offer_is_what_there_is_less_what_is_held() -> None:
    offer = offer_of(view_of(NODES, LINE, [job("j", ["a", "a", "b"], [(0, 2, 20 * MBIT, ["a", "s", "b"])])]))
    cluster = offer.cluster
    assert cluster.topology.nodes == ("a", "b", "s")
    assert cluster.node_capacity[0].tolist() == [4000, 4000, 0]
    assert cluster.node_used[0].tolist() == [1000, 500, 0]
    assert cluster.node_used[1].tolist() == [GIB // 2, GIB // 4, 0]
    assert set(cluster.link_capacity.tolist()) == {95 * MBIT}, "plans may not use the headroom"
    ends = zip(cluster.topology.link_src.tolist(), cluster.topology.link_dst.tolist(), strict=True)
    used = dict(zip(ends, cluster.link_used.tolist(), strict=True))
    assert used == {(0, 2): 20 * MBIT, (2, 0): 0, (2, 1): 20 * MBIT, (1, 2): 0}


@pytest.mark.parametrize("state", list(AllocationState))
def test_what_a_worker_holds_until_it_is_surely_gone(state: AllocationState) -> None:
    record = job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])], allocation={"state": state})
    cluster = offer_of(view_of(NODES, LINE, [record])).cluster
    gone = state in ("succeeded", "failed", "stopped", "lost")
    assert cluster.node_used.any() != gone
    assert cluster.link_used.any() != gone


def test_a_flow_is_held_until_the_last_worker_is_gone() -> None:
    record = job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])])
    first, second = record.allocations
    record = record.model_copy(update={"allocations": [first.model_copy(update={"state": "succeeded"}), second]})
    cluster = offer_of(view_of(NODES, LINE, [record])).cluster
    assert cluster.node_used[0].tolist() == [0, 500, 0]
    assert cluster.link_used.sum() == 2 * MBIT


def test_a_link_that_is_down_is_not_offered_and_one_that_was_measured_slower_less_of_it() -> None:
    links = [*wire("a", "s"), *wire("s", "b", state="down"), *wire("a", "b", measured=10 * MBIT)]
    cluster = offer_of(view_of(NODES, links)).cluster
    nodes = cluster.topology.nodes
    ends = zip(cluster.topology.link_src.tolist(), cluster.topology.link_dst.tolist(), strict=True)
    offered = {
        nodes[src] + nodes[dst]: capacity for (src, dst), capacity in zip(ends, cluster.link_capacity, strict=True)
    }
    full, slow = reservable(100 * MBIT), reservable(10 * MBIT)
    assert offered == {"as": full, "sa": full, "ab": slow, "ba": slow}


def test_media_are_offered_without_their_headroom() -> None:
    media = [MediumRecord(name="air", bandwidth=10 * MBIT)]
    record = job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])])
    links = [*wire("a", "s", medium="air"), *wire("s", "b", medium="air")]
    cluster = offer_of(view_of(NODES, links, [record], media=media)).cluster
    assert cluster.medium_capacity.tolist() == [reservable(10 * MBIT)]
    assert cluster.medium_used.tolist() == [2 * MBIT]


def test_of_media_that_tunnels_share_less_is_offered() -> None:
    media = [MediumRecord(name="air", bandwidth=10 * MBIT), MediumRecord(name="lan", bandwidth=10 * MBIT)]
    links = [*wire("a", "s", medium="air"), *wire("s", "b", medium="lan", kind="vxlan")]
    topology = offer_of(view_of(NODES, links, media=media)).cluster
    assert sorted(topology.medium_capacity.tolist()) == [9 * MBIT, reservable(10 * MBIT)]


def test_links_lead_to_nodes_within_reach_only() -> None:
    """The manager commits no path through a silent node, and none to one that has not joined."""
    silent = [node("a", 1), node("s", 2, state="unreachable"), node("b", 3)]
    assert len(offer_of(view_of(silent, LINE)).cluster.link_capacity) == 0
    assert len(offer_of(view_of(NODES[1:], LINE)).cluster.link_capacity) == 2


def test_an_earlier_offer_saves_what_has_not_changed() -> None:
    view = view_of(NODES, LINE)
    earlier = offer_of(view)
    record = job("j", ["a", "a", "b"], [(0, 2, 20 * MBIT, ["a", "s", "b"])])
    view.merge(Snapshot(full=False, epoch=view.epoch, version=9, nodes=[node("b", 3, cordoned=True)], jobs=[record]))
    later, anew = offer_of(view, earlier), offer_of(view)
    assert later.cluster.link_capacity is earlier.cluster.link_capacity
    assert later.nodes == anew.nodes
    assert later.cluster.node_used.tolist() == anew.cluster.node_used.tolist()
    assert later.cluster.link_used.tolist() == anew.cluster.link_used.tolist()
    assert later.cluster.link_used.any()
    assert not earlier.cluster.link_used.any()


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": [node("b", 3, cpu=8000)]},
        {"nodes": [node("b", 3, memory=GIB)]},
        {"nodes": [node("b", 3, gpu=1)]},
        {"nodes": [node("b", 3, state="unreachable")]},
        {"nodes": [node("c", 4)]},
        {"topology": Topology(links=LINE[:2])},
        {"topology": Topology(links=[*LINE[:2], *wire("s", "b", 7 * MBIT)])},
    ],
)
def test_an_earlier_offer_hides_no_change(change: dict[str, Any]) -> None:
    view = view_of(NODES, LINE, [job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])])])
    earlier = offer_of(view)
    view.merge(Snapshot(full=False, epoch=view.epoch, version=9, **change))
    later, anew = offer_of(view, earlier), offer_of(view)
    assert later.cluster.topology is anew.cluster.topology
    for name in ("node_capacity", "node_used", "link_capacity", "link_used"):
        assert getattr(later.cluster, name).tolist() == getattr(anew.cluster, name).tolist()
    states = [
        (o.cluster.topology.nodes, o.cluster.node_capacity.tolist(), o.cluster.link_capacity.tolist())
        for o in (earlier, later)
    ]
    assert states[0] != states[1]


def test_usage_of_nodes_that_have_left_is_nobodys() -> None:
    assert not offer_of(view_of(NODES, LINE, [job("j", ["gone"])])).cluster.node_used.any()


def task(**fields: object) -> Task:
    return Task.model_validate({"name": "t", "rank": 0, "cpu": 1, "memory": 1} | fields)


@pytest.mark.parametrize(
    ("record", "asks", "why"),
    [
        (node("a"), {}, None),
        (node("a", state="unreachable"), {}, "unreachable"),
        (node("a", cordoned=True), {}, "cordoned"),
        (node("a", arch="arm64"), {"arch": "amd64"}, "arch is arm64, not amd64"),
        (node("a", arch=""), {"arch": "amd64"}, "arch is unknown, not amd64"),
        (node("a", arch="arm64"), {"arch": "arm64"}, None),
        (node("a"), {"labels": {"site": "roof"}}, "label site is absent, not roof"),
        (node("a", labels={"site": "cellar"}), {"labels": {"site": "roof"}}, "label site is cellar, not roof"),
        (node("a", labels={"site": "roof", "x": "y"}), {"labels": {"site": "roof"}}, None),
    ],
)
def test_refusals_say_why(record: object, asks: dict[str, object], why: str | None) -> None:
    assert refusal(task(**asks), record) == why  # type: ignore[arg-type]


def test_switches_are_nobodys_candidates_and_not_mentioned() -> None:
    offer = offer_of(view_of([node("a", cordoned=True), node("s", cpu=0, memory=0, cordoned=True)]))
    assert refusals([task()], offer) == {"t": {"a": "cordoned"}}


def test_a_decision_names_places_ways_and_refusals() -> None:
    view = view_of([*NODES, node("c", 4, cordoned=True)], LINE)
    waiting = job("q", tasks=2, asked=[(0, 1, 10 * MBIT, 50 * MBIT)], task={"cpu": 3000})
    decision = decided(waiting, offer_of(view))
    assert decision.reason is None
    assert set(decision.assignments.values()) == {"a", "b"}
    (flow,) = decision.flows
    assert flow.bandwidth == 50 * MBIT
    assert flow.path == [decision.assignments["w-0"], "s", decision.assignments["w-1"]]
    assert decision.decision is not None
    assert decision.decision.refused["w-0"]["c"] == "cordoned"
    assert set(decision.decision.metrics) == {"load_imbalance", "bandwidth_satisfaction", "composite"}


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
    assert [flow.bandwidth for flow in flow_plans(plan, flows)] == [10_000_000, 20_000_000]


def test_freed_capacity_is_news_and_less_of_it_is_not() -> None:
    empty = offer_of(view_of(NODES, LINE))
    fuller = offer_of(view_of(NODES, LINE, [job("j", ["a"])]))
    assert fuller.nothing_freed_since(empty)
    assert empty.nothing_freed_since(empty)
    assert not empty.nothing_freed_since(fuller)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("b", 3, cordoned=True), *NODES[1:]],
        [node("b", 3, labels={"x": "y"}), *NODES[1:]],
        [node("b", 3, arch="arm64"), *NODES[1:]],
        [node("b", 3, cpu=8000), *NODES[1:]],
        [*NODES, node("c", 4)],
        NODES[1:],
    ],
    ids=["cordoned", "labels", "arch", "capacity", "joined", "left"],
)
def test_every_change_of_the_cluster_is_news(nodes: list[object]) -> None:
    before, after = offer_of(view_of(NODES, LINE)), offer_of(view_of(nodes, LINE))  # type: ignore[arg-type]
    assert not after.nothing_freed_since(before)
    assert not before.nothing_freed_since(after)


def test_only_jobs_that_hold_nothing_wait() -> None:
    waits, leaving = job("waits"), job("leaving", ["a"], state="queued")
    assert queued([leaving, job("r", ["a"]), waits]) == [waits]


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
            assert limits.min <= flow.bandwidth <= limits.max
            assert (flow.path[0], flow.path[-1]) == (decision.assignments[flow.src], decision.assignments[flow.dst])
            for hop in pairwise(flow.path):
                links[hop] += flow.bandwidth
    for name, total in cpu.items():
        assert total <= cluster.node_capacity[0, index[name]]
    for (src, dst), rate in links.items():
        assert rate <= cluster.link_capacity[cluster.topology.link_index[index[src], index[dst]]]


def test_what_a_plan_takes_is_in_the_offers_columns() -> None:
    offer = offer_of(view_of(NODES, LINE))
    waiting = job("q", tasks=2, asked=[(0, 1, MBIT, 2 * MBIT)], task={"cpu": 3000})
    decision = decided(waiting, offer).decision
    assert decision is not None
    left = offer.less({"q": decision.cells})
    assert left.cluster.node_used[0].tolist() == [3000, 3000, 0]
    assert left.cluster.link_used.sum() == 2 * 2 * MBIT
    assert left.held == {"q": decision.cells}
    assert not offer.cluster.node_used.any()


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
    assert [(flow.src, flow.path, flow.bandwidth) for flow in far.flows] == [("@a", ["a", "s", "b"], 20 * MBIT)]


@pytest.mark.parametrize(
    ("data", "why", "forever"),
    [
        ({}, "offers no dataset mnist", True),
        ({"datasets": ["words"]}, "offers no dataset mnist", True),
        ({"datasets": ["mnist"], "state": "unreachable"}, "is unreachable", False),
        ({"state": "unreachable"}, "is unreachable", False),
    ],
)
def test_data_that_is_not_there_is_the_reason(data: dict[str, Any], why: str, forever: bool) -> None:
    offer = offer_of(view_of(nodes_with(**data), LINE))
    decision = decided(reading("mnist"), offer)
    assert decision.reason is not None
    assert (decision.reason.code, decision.reason.where) == ("no-data", "a")
    assert decision.reason.text == f"node a, where data of w-0 lies, {why}"
    assert decision.reason.forever == forever, "a node that is away may come back by itself"
    mended = offer_of(view_of(nodes_with(datasets=["mnist"]), LINE), offer)
    assert not mended.nothing_freed_since(offer), "then it is worth another look"


def test_data_of_a_node_that_nobody_knows() -> None:
    decision = decided(reading("mnist"), offer_of(view_of([node("b", 3)], [])))
    assert decision.reason is not None
    assert decision.reason.text == "node a, where data of w-0 lies, has not joined"
    assert decision.reason.forever
    nothing = decided(reading(), offer_of(view_of(nodes_with(), LINE)))
    assert nothing.reason is not None
    assert nothing.reason.text.endswith("offers no data")
