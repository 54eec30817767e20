"""What the cluster offers: all there is, less what is held."""

from typing import Any

import pytest
from cluster_state import GIB, MBIT, job, node, view_of, wire

from ces_common.messages.records import MediumRecord, Snapshot, Topology
from ces_common.shares import reservable
from ces_common.states import AllocationState
from ces_scheduler.offer import offer_of

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
    before, after = offer_of(view_of(NODES, LINE)), offer_of(view_of(nodes, LINE))
    assert not after.nothing_freed_since(before)
    assert not before.nothing_freed_since(after)
