"""The desired network, by hand: what each node is asked for, so that packets take their way and have their rate."""

import pytest
from cluster_state import MBIT, NOW, job, node, view_of, wire

from ces_common.flowfile import FlowMode
from ces_common.jobfile import Flow
from ces_common.messages.checkpoints import JobCheckpoints, StoredCheckpoint
from ces_common.messages.desired import (
    CheckpointReader,
    DesiredNetwork,
    EncryptedTunnel,
    Endpoint,
    FlowClass,
    LinkDevice,
    PeerRoute,
    PolicyRoute,
    Reader,
    SubnetRoute,
    VxlanTunnel,
)
from ces_common.messages.records import FlowRecord, JobRecord, LinkRecord
from ces_common.shares import best_effort_rate, return_rate
from ces_common.states import JobState
from ces_network_ctl.desired_network import Planner
from ces_network_ctl.job_network import involved_nodes, needs_network
from ces_network_ctl.plain_routes import PlainRoutes

A, S, B = node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3)
LINE = [*wire("a", "s"), *wire("s", "b")]
ONE, TWO = "10.77.1.2", "10.77.3.2"


def two_hops(*, both: bool = False) -> JobRecord:
    """Two workers, on a and b, with a switch between them."""
    flows = [(0, 1, 20 * MBIT, ["a", "s", "b"])]
    if both:
        flows.append((1, 0, 4 * MBIT, ["b", "s", "a"]))
    return job("j", ["a", "b"], flows, addresses=[ONE, TWO])


def test_two_hops_by_hand() -> None:
    planned = Planner().plan(view_of([A, S, B], LINE, [two_hops()]))
    hosts = {"w-0": ONE, "w-1": TWO}

    def device(peer: str, gateway: str) -> LinkDevice:
        return LinkDevice(
            peer=peer,
            device=f"to-{peer}",
            kind="veth",
            bandwidth=100 * MBIT,
            best_effort=2 * MBIT,
            gateway=gateway,
        )

    def data(via: str) -> FlowClass:
        return FlowClass(job="j.1", number=1, kind="data", via=via, src=ONE, dst=TWO, rate=20 * MBIT)

    def back(via: str) -> FlowClass:
        return FlowClass(job="j.1", number=1, kind="return", via=via, src=TWO, dst=ONE, rate=540_000, small_only=True)

    def endpoint(rank: int, address: str, peer: str) -> Endpoint:
        return Endpoint(
            allocation=f"j-w-{rank}",
            job="j.1",
            address=address,
            hostname=f"w-{rank}",
            hosts=hosts,
            peers=[PeerRoute(address=peer, via="s")],
        )

    assert planned["a"].model_copy(update={"generation": 0}) == DesiredNetwork(
        node="a",
        epoch="e",
        generation=0,
        mode="tc",
        router="10.77.1.1",
        subnet="10.77.1.0/24",
        links=[device("s", "10.77.2.1")],
        subnets=[
            SubnetRoute(subnet="10.77.2.0/24", via="s"),
            SubnetRoute(subnet="10.77.3.0/24", via="s", job="j.1"),
        ],
        endpoints=[endpoint(0, ONE, TWO)],
        policies=[],
        classes=[data("s")],
    )
    assert planned["s"].endpoints == []
    assert planned["s"].links == [device("a", "10.77.1.1"), device("b", "10.77.3.1")]
    assert planned["s"].policies == [
        PolicyRoute(job="j.1", src=ONE, dst=TWO, via="b"),
        PolicyRoute(job="j.1", src=TWO, dst=ONE, via="a"),
    ]
    assert planned["s"].classes == [data("b"), back("a")]
    assert planned["b"].endpoints == [endpoint(1, TWO, ONE)]
    assert planned["b"].policies == []
    assert planned["b"].classes == [back("s")]


def test_return_classes_take_only_small_packets() -> None:
    planned = Planner().plan(view_of([A, S, B], LINE, [two_hops(both=True)]))

    def classes(name: str) -> list[tuple[str, int, str, int, bool]]:
        return [(each.kind, each.number, each.via, each.rate, each.small_only) for each in planned[name].classes]

    assert classes("a") == [("data", 1, "s", 20 * MBIT, False), ("return", 2, "s", 140_000, True)]
    assert classes("b") == [("return", 1, "s", 540_000, True), ("data", 2, "s", 4 * MBIT, False)]
    assert classes("s") == [
        ("data", 1, "b", 20 * MBIT, False),
        ("return", 1, "a", 540_000, True),
        ("data", 2, "a", 4 * MBIT, False),
        ("return", 2, "b", 140_000, True),
    ]
    assert len(planned["s"].policies) == 2


def test_workers_on_one_node_need_no_link() -> None:
    local = job("j", ["a", "a"], [(0, 1, MBIT, ["a"])], addresses=[ONE, "10.77.1.3"])
    document = Planner().plan(view_of([A, S, B], LINE, [local]))["a"]
    assert [endpoint.peers for endpoint in document.endpoints] == [
        [PeerRoute(address="10.77.1.3")],
        [PeerRoute(address=ONE)],
    ]
    assert (document.policies, document.classes) == ([], [])


def test_peers_without_a_flow_reach_each_other_by_plain_routes() -> None:
    planned = Planner().plan(view_of([A, S, B], LINE, [job("j", ["a", "b"], addresses=[ONE, TWO])]))
    assert planned["a"].endpoints[0].peers == [PeerRoute(address=TWO, via="s")]
    assert (planned["s"].policies, planned["s"].classes) == ([], [])
    assert planned["s"].jobs == {"j.1"}, "its agent says when the way is there"


def test_a_node_has_routes_to_its_neighbours_and_to_where_jobs_meet_over_it() -> None:
    row = [node(name, at) for at, name in enumerate("abcde", 1)]
    links = [link for a, b in ("ab", "bc", "cd", "de") for link in wire(a, b)]
    planned = Planner().plan(view_of(row, links, [job("j", ["a", "c"], addresses=[ONE, TWO])]))

    def routes(name: str) -> set[tuple[str, str]]:
        return {(route.subnet, route.via) for route in planned[name].subnets if route.job}

    assert routes("a") == {("10.77.3.0/24", "b")}
    assert routes("b") == {("10.77.3.0/24", "c"), ("10.77.1.0/24", "a")}
    assert (routes("d"), routes("e")) == (set(), set())
    assert {route.via for route in planned["d"].subnets} == {"c", "e"}


def test_peers_that_no_link_joins_are_left_out() -> None:
    planned = Planner().plan(view_of([A, B], [], [job("j", ["a", "b"], addresses=[ONE, TWO])]))
    assert [each.peers for name in "ab" for each in planned[name].endpoints] == [[], []]


def test_answers_go_another_way_where_links_lead_one_way_only() -> None:
    links = [LinkRecord(src=a, dst=b, bandwidth=100 * MBIT) for a, b in (("a", "s"), ("s", "b"), ("b", "a"))]
    planned = Planner().plan(view_of([A, S, B], links, [two_hops()]))
    assert [(each.kind, each.via) for each in planned["b"].classes] == [("return", "a")]
    assert planned["b"].endpoints[0].peers == [PeerRoute(address=ONE, via="a")]
    assert planned["s"].policies == [PolicyRoute(job="j.1", src=ONE, dst=TWO, via="b")]


def test_a_neighbour_without_a_link_back_is_not_asked_over_the_link() -> None:
    links = [*wire("a", "s"), LinkRecord(src="s", dst="b", bandwidth=100 * MBIT)]
    planned = Planner().plan(view_of([A, S, B], links))
    assert {(name, link.peer): link.two_way for name in "asb" for link in planned[name].links} == {
        ("a", "s"): True,
        ("s", "a"): True,
        ("s", "b"): False,
    }


def test_tunnels_have_one_number_on_both_sides() -> None:
    planned = Planner().plan(view_of([A, S, B], [*wire("a", "s", kind="vxlan"), *wire("s", "b", kind="vxlan")]))
    (there,) = planned["a"].links
    back, other = planned["s"].links
    assert there.vxlan is not None
    assert other.vxlan is not None
    assert there.vxlan == VxlanTunnel(vni=there.vxlan.vni, remote="192.0.2.2", local="192.0.2.1")
    assert back.vxlan == VxlanTunnel(vni=there.vxlan.vni, remote="192.0.2.1", local="192.0.2.2")
    assert other.vxlan.vni != there.vxlan.vni
    assert 0 < there.vxlan.vni < 2**24


def test_neighbours_over_encrypted_links_are_told_each_others_keys() -> None:
    keys = [letter * 43 + "=" for letter in "AEI"]
    links = [*wire("a", "s", kind="wireguard"), *wire("s", "b", kind="wireguard")]
    planner = Planner()
    first = planner.plan(view_of([A, S, B], links))
    assert first["s"].links[0].wireguard == EncryptedTunnel(keys=[], address="192.0.2.1", port=0)
    known = [A.model_copy(update={"link_keys": keys[:2], "link_port": 51872}), S, B]
    planned = planner.plan(view_of(known, links))
    to_a, to_b = planned["s"].links
    assert to_a.wireguard == EncryptedTunnel(keys=keys[:2], address="192.0.2.1", port=51872)
    assert to_a.vxlan is not None
    assert (to_a.vxlan.remote, to_a.vxlan.local) == (to_a.gateway, "") == ("10.77.1.1", "")
    assert to_b.wireguard == EncryptedTunnel(keys=[], address=B.host_address, port=0)
    assert (planned["a"].link_keys, planned["b"].link_keys) == (keys[:2], [])
    assert planned["b"] is first["b"], "whom it does not concern, it does not concern"


def test_a_node_that_shapes_nothing_has_endpoints_but_no_links() -> None:
    plain = [node("a", 1, network="none"), S, node("b", 3, network="none")]
    planned = Planner().plan(view_of(plain, LINE, [two_hops()]))
    assert planned["a"].mode == "none"
    assert (planned["a"].links, planned["a"].subnets) == ([], [])
    assert [each.allocation for each in planned["a"].endpoints] == ["j-w-0"]
    assert planned["a"].jobs == {"j.1"}, "or its agent could never say that the job's network is in place"
    assert planned["s"].links != []


def test_links_and_jobs_of_nodes_that_have_not_joined_do_not_exist_yet() -> None:
    planned = Planner().plan(view_of([A, S], LINE, [two_hops()]))
    assert set(planned) == {"a", "s"}
    assert [link.peer for link in planned["s"].links] == ["a"]
    assert all(document.jobs == set() for document in planned.values())


@pytest.mark.parametrize(
    ("state", "allocation", "has"),
    [
        (JobState.PLANNED, {}, True),
        (JobState.PREPARING, {}, True),
        (JobState.STARTING, {}, True),
        (JobState.RUNNING, {}, True),
        (JobState.PAUSED, {}, True),
        (JobState.RESCHEDULING, {"state": "stopping", "stopping_since": 1}, True),
        (JobState.CANCELLED, {"state": "stopping", "stopping_since": 1}, True),
        (JobState.FAILED, {"state": "stopped"}, False),
        (JobState.SUCCEEDED, {"state": "succeeded"}, False),
        (JobState.QUEUED, {"state": "lost"}, False),
    ],
)
def test_a_job_has_its_network_until_the_last_worker_is_gone(
    state: JobState, allocation: dict[str, object], has: bool
) -> None:
    record = job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])], state=state, allocation=allocation)
    assert needs_network(record) is has
    planned = Planner().plan(view_of([A, S, B], LINE, [record]))
    assert all((document.jobs == {"j.1"}) is has for document in planned.values())


def test_plain_routes_are_the_shortest_and_ties_go_to_the_first_name() -> None:
    links = [link for a, b in ("ab", "bd", "ac", "cd", "de") for link in wire(a, b)]
    routes = PlainRoutes(links)
    assert [(routes.path("a", name) or [])[1] for name in "bcde"] == ["b", "c", "b", "b"]
    assert routes.path("a", "e") == ["a", "b", "d", "e"]
    assert routes.path("a", "a") == ["a"]
    assert routes.path("a", "z") is None


def test_plain_routes_go_around_a_link_that_is_down_and_its_device_stays() -> None:
    nodes = [A, node("b", 2), node("c", 3)]
    links = [*wire("a", "b"), *wire("b", "c"), *wire("c", "a")]
    links[0] = links[0].model_copy(update={"state": "down"})
    planned = Planner().plan(view_of(nodes, links, [job("j", ["a", "b"], addresses=[ONE, "10.77.2.2"])]))
    assert {route.subnet: route.via for route in planned["a"].subnets} == {"10.77.2.0/24": "c", "10.77.3.0/24": "c"}
    assert {link.peer for link in planned["a"].links} == {"b", "c"}


def test_a_flow_without_bandwidth_has_its_way_and_no_class() -> None:
    cut = job("j", ["a", "b"], [(0, 1, 0, ["a", "s", "b"])], addresses=[ONE, TWO])
    planned = Planner().plan(view_of([A, S, B], LINE, [cut]))
    assert planned["s"].policies
    assert not any(document.classes for document in planned.values())


def test_elastic_flows_may_borrow_up_to_their_maximum_where_the_sender_sees_all_of_the_link() -> None:
    links = [*wire("a", "s"), *wire("s", "b", medium="air")]
    flow = (0, 1, 10 * MBIT, ["a", "s", "b"])
    asked = [(0, 1, MBIT, 30 * MBIT)]
    record = job("j", ["a", "b"], [flow], asked=asked, addresses=[ONE, TWO])
    record.reserved[0] = record.reserved[0].model_copy(update={"max": 30 * MBIT})

    def ceils(mode: FlowMode) -> dict[tuple[str, str, str], int | None]:
        flows = [flow.model_copy(update={"mode": mode}) for flow in record.flows]
        planned = Planner().plan(view_of([A, S, B], links, [record.model_copy(update={"flows": flows})]))
        return {(at, each.via, each.kind): each.ceil for at in planned for each in planned[at].classes}

    assert set(ceils("strict").values()) == {None}
    assert ceils("elastic") == {
        ("a", "s", "data"): 30 * MBIT,
        ("s", "b", "data"): None,  # others send on that medium too
        ("b", "s", "return"): None,
        ("s", "a", "return"): return_rate(30 * MBIT),
    }


def test_a_link_that_carries_less_than_configured_is_shared_out_as_it_is_and_lends_nothing() -> None:
    measured = {"measured": 20 * MBIT + 450_000}
    links = [link.model_copy(update=measured) if link.src == "s" else link for link in LINE]
    record = job("j", ["a", "b"], [(0, 1, 19 * MBIT, ["a", "s", "b"])], asked=[(0, 1, MBIT, 30 * MBIT)])
    record.reserved[0] = record.reserved[0].model_copy(update={"max": 30 * MBIT})
    record.flows[0] = record.flows[0].model_copy(update={"mode": "elastic"})
    answered = job("k", ["b", "a"], [(0, 1, 20 * MBIT, ["b", "s", "a"])])
    planned = Planner().plan(view_of([A, S, B], links, [record, answered]))
    for link in planned["s"].links:
        assert link.bandwidth > measured["measured"]  # a probe can find that the wire has recovered
        assert link.best_effort == best_effort_rate(measured["measured"])
        here = [each for each in planned["s"].classes if each.via == link.peer]
        assert here
        assert sum(each.rate for each in here) + link.best_effort <= measured["measured"]
    ceils = {
        (at, each.via, each.kind): each.ceil for at in "as" for each in planned[at].classes if each.job == record.key
    }
    assert ceils == {("a", "s", "data"): 30 * MBIT, ("s", "b", "data"): None, ("s", "a", "return"): None}


def test_a_return_class_is_never_slower_than_a_handshake_needs() -> None:
    slow = job("j", ["a", "b"], [(0, 1, 1000, ["a", "s", "b"])], addresses=[ONE, TWO])
    planned = Planner().plan(view_of([A, S, B], LINE, [slow]))
    assert [each.rate for each in planned["b"].classes] == [return_rate(1000)] == [40_025]


def reading(place: str, path: list[str]) -> JobRecord:
    """One worker that reads data of node a."""
    flow = FlowRecord(
        number=1, src="@a", dst="w-0", min=1, max=20 * MBIT, rate=20 * MBIT if len(path) > 1 else 1, path=path
    )
    record = job("j", [place], addresses=[TWO], reserved=[flow])
    asked = Flow(src="@a", dst="w-0", min=1, max=20 * MBIT, datasets=["mnist"])
    return record.model_copy(update={"flows": [asked]})


def test_data_of_a_node_takes_a_flow_of_its_own() -> None:
    planned = Planner().plan(view_of([A, S, B], LINE, [reading("b", ["a", "s", "b"])]))
    source = planned["a"].router
    assert source == "10.77.1.1"
    assert planned["a"].readers == [Reader(job="j.1", address=TWO, datasets=["mnist"])]
    assert planned["a"].endpoints == []
    # A node has no routing table of its own for what it sends, as a worker has: the first hop needs a policy, too.
    assert planned["a"].policies == [PolicyRoute(job="j.1", src=source, dst=TWO, via="s")]
    assert planned["s"].policies == [
        PolicyRoute(job="j.1", src=source, dst=TWO, via="b"),
        PolicyRoute(job="j.1", src=TWO, dst=source, via="a"),
    ]
    (data,) = planned["a"].classes
    assert (data.kind, data.src, data.dst, data.rate) == ("data", source, TWO, 20 * MBIT)
    assert [(each.kind, each.small_only) for each in planned["b"].classes] == [("return", False)], "requests fit in it"
    (worker,) = planned["b"].endpoints
    assert worker.peers == [PeerRoute(address=source, via="s")]
    assert planned["b"].readers == planned["s"].readers == []
    assert all("j.1" in planned[name].jobs for name in "asb")


def copied(**known: object) -> JobRecord:
    """One task on a; a copy of its checkpoint is on b."""
    stored = StoredCheckpoint(attempt=1, incarnation=1, name="step", size=9, digest="0" * 64, nodes=["b"], at=NOW)
    checkpoints = JobCheckpoints.model_validate({"stored": [stored], **known})
    return job("j", ["a"], addresses=[ONE], checkpoint_node="a", checkpoints=checkpoints)


def test_a_copy_of_a_checkpoint_is_fetched_by_plain_routes() -> None:
    """Which are of no class, and so best effort."""
    b = node("b", 3, public_key="KB")
    planned = Planner().plan(view_of([A, S, b], LINE, [copied()]))
    assert planned["a"].checkpoint_readers == [
        CheckpointReader(job="j.1", owner="j", node="b", address="10.77.3.1", key="KB")
    ]
    assert planned["b"].checkpoint_readers == planned["s"].checkpoint_readers == []
    ways = {name: {(each.subnet, each.via) for each in planned[name].subnets if each.job} for name in "asb"}
    assert ways == {
        "a": {(B.subnet, "s")},
        "s": {(A.subnet, "a"), (B.subnet, "b")},
        "b": {(A.subnet, "s")},
    }
    assert not any(planned[name].classes or planned[name].policies for name in "asb")
    assert involved_nodes(copied()) == {"a"}, "no job waits for long for a node that holds copies"


def test_a_first_task_that_goes_elsewhere_may_fetch_from_there() -> None:
    planner = Planner()
    a = node("a", 1, public_key="KA")
    planner.plan(view_of([a, S, B], LINE, [copied()]))
    planned = planner.plan(view_of([a, S, B], LINE, [copied(restoring=True, former="s")]))
    reader = CheckpointReader(job="j.1", owner="j", node="a", address="10.77.1.1", key="KA")
    assert planned["b"].checkpoint_readers == [reader]
    assert planned["s"].checkpoint_readers == [reader.model_copy(update={"newest": True})], "it was there before"
    other = planner.plan(view_of([node("a", 1, public_key="KX"), S, B], LINE, [copied(restoring=True, former="s")]))
    assert [each.key for each in other["s"].checkpoint_readers] == ["KX"], "a device that was replaced has another key"


def test_a_holder_of_copies_where_it_was_before_may_be_asked_for_the_newest_at_once() -> None:
    """Between the same nodes as before."""
    planner = Planner()
    for former, newest in ((None, False), ("b", True)):
        planned = planner.plan(view_of([A, S, B], LINE, [copied(restoring=True, former=former)]))
        assert [each.newest for each in planned["b"].checkpoint_readers] == [newest]


def test_data_of_the_workers_own_node_takes_no_link() -> None:
    planned = Planner().plan(view_of([A, S, B], LINE, [reading("a", ["a"])]))
    assert planned["a"].readers == [Reader(job="j.1", address=TWO, datasets=["mnist"])]
    assert planned["a"].endpoints[0].peers == [PeerRoute(address="10.77.1.1", via=None)]
    assert (planned["a"].policies, planned["a"].classes) == ([], [])
    assert all(planned[name].jobs == set() for name in "sb")
