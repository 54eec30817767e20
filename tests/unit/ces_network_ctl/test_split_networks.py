"""The network of a part of a job that is split over regions: what crosses the border leaves by the gateway, on the way
to the node that stands for the other region's."""

from __future__ import annotations

from typing import Any

from cluster_state import MBIT, job, node, view_of, wire

from ces_common.jobfile import Flow
from ces_common.messages.desired import FlowClass, PeerRoute, PolicyRoute
from ces_common.messages.pieces import Part
from ces_common.messages.records import JobRecord
from ces_common.shares import return_rate
from ces_common.states import JobState
from ces_network_ctl.desired_network import Planner
from ces_network_ctl.job_network import involved_nodes

FAR = "south--gw"
NODES = [node("a", 1), node("gate", 2, cpu=0, memory=0), node(FAR, 3, cpu=0, memory=0, region="south")]
LINKS = [*wire("a", "gate"), *wire("gate", FAR)]
HERE, THERE = "10.77.1.2", "10.99.5.2"


def part(*, placed: bool = True, **more: Any) -> JobRecord:
    """w-0 is here, on a, and w-1 in the south, each with a flow to the other."""
    out, back = ["a", "gate", FAR], [FAR, "gate", "a"]
    place = {"task": "w-1", "region": "south", "address": THERE, "port": 29400}
    flows = [
        Flow(src="w-0", dst="w-1", min=20 * MBIT, max=20 * MBIT, border=FAR),
        Flow(src="w-1", dst="w-0", min=4 * MBIT, max=4 * MBIT, border=FAR),
    ]
    said = Part.model_validate({"tasks": ["w-0"], "ranks": {"w-0": 0, "w-1": 1}, "places": [place] if placed else None})
    reserved = [(0, 1, 20 * MBIT, out), (1, 0, 4 * MBIT, back)]
    return job("j", ["a"], reserved, addresses=[HERE], part=said).model_copy(update={"flows": flows, **more})


def test_a_flow_leaves_by_the_gateway_and_the_other_comes_in_there() -> None:
    planned = Planner().plan(view_of(NODES, LINKS, [part()]))
    assert FAR not in planned
    [endpoint] = planned["a"].endpoints
    assert endpoint.peers == [PeerRoute(address=THERE, via="gate")]
    assert endpoint.hosts == {"w-0": HERE, "w-1": THERE}
    assert planned["gate"].policies == [
        PolicyRoute(job="j.1", src=HERE, dst=THERE, via=FAR),
        PolicyRoute(job="j.1", src=THERE, dst=HERE, via="a"),
    ]
    one = {"job": "j.1", "number": 1, "src": HERE, "dst": THERE, "rate": 20 * MBIT}
    two = {"job": "j.1", "number": 2, "src": THERE, "dst": HERE, "rate": 4 * MBIT}

    def back(flow: dict[str, Any], via: str) -> FlowClass:
        ends = {"src": flow["dst"], "dst": flow["src"], "rate": return_rate(flow["rate"])}
        return FlowClass(**{**flow, **ends}, kind="return", via=via, small_only=True)

    def data(flow: dict[str, Any], via: str) -> FlowClass:
        return FlowClass(**flow, kind="data", via=via)

    classes = {(each.number, each.kind, each.via): each for each in planned["gate"].classes}
    assert classes == {
        (1, "data", FAR): data(one, FAR),
        (1, "return", "a"): back(one, "a"),
        (2, "data", "a"): data(two, "a"),
        (2, "return", FAR): back(two, FAR),
    }
    assert {device.peer for device in planned["gate"].links} == {"a", FAR}


def test_without_word_of_its_peers_nothing_is_laid() -> None:
    planned = Planner().plan(view_of(NODES, LINKS, [part(placed=False, state=JobState.PLANNED)]))
    assert planned["a"].endpoints == planned["gate"].classes == []


def test_the_commit_changes_what_was_planned_before() -> None:
    planner = Planner()
    planner.plan(view_of(NODES, LINKS, [part(placed=False, state=JobState.PLANNED)]))
    planned = planner.plan(view_of(NODES, LINKS, [part(state=JobState.PLANNED)]))
    assert len(planned["a"].endpoints) == 1


def test_nobody_waits_for_a_report_of_what_stands_for_a_gateway() -> None:
    assert involved_nodes(part()) == {"a", "gate"}


def test_a_peer_with_which_a_task_shares_no_flow_is_out_of_its_reach() -> None:
    alone = part(flows=[], reserved=[])
    planned = Planner().plan(view_of(NODES, LINKS, [alone]))
    [endpoint] = planned["a"].endpoints
    assert endpoint.peers == []
