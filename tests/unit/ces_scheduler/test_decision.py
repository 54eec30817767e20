"""What is kept of a decision, and what it takes."""

from cluster_state import MBIT, job, node, view_of, wire
from queue_looks import decided

from ces_scheduler.offer import offer_of

LINE = [*wire("a", "s"), *wire("s", "b")]


NODES = [node("b", 3), node("a", 1), node("s", 2, cpu=0, memory=0)]


def test_a_decision_names_places_ways_and_refusals() -> None:
    view = view_of([*NODES, node("c", 4, cordoned=True)], LINE)
    waiting = job("q", tasks=2, asked=[(0, 1, 10 * MBIT, 50 * MBIT)], task={"cpu": 3000})
    decision = decided(waiting, offer_of(view))
    assert decision.reason is None
    assert set(decision.assignments.values()) == {"a", "b"}
    (flow,) = decision.flows
    assert flow.rate == 50 * MBIT
    assert flow.path == [decision.assignments["w-0"], "s", decision.assignments["w-1"]]
    assert decision.decision is not None
    assert decision.decision.refused["w-0"]["c"] == "cordoned"
    assert set(decision.decision.metrics) == {"load_imbalance", "bandwidth_satisfaction", "composite"}


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
