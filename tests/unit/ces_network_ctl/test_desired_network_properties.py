"""The desired network: what holds for every topology and every set of jobs."""

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass

from cluster_state import MBIT, job, node, view_of, wire
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.records import JobRecord, LinkRecord, NodeRecord, Snapshot, Topology
from ces_common.shares import LEAST_RATE, best_effort_rate, reservable
from ces_common.state_view import StateView
from ces_common.states import JobState
from ces_network_ctl.desired_network import Planner
from ces_network_ctl.job_network import involved_nodes


@dataclass(frozen=True)
class World:
    nodes: list[NodeRecord]
    links: list[LinkRecord]
    jobs: list[JobRecord]

    def view(self) -> StateView:
        return view_of(self.nodes, self.links, self.jobs)

    def capacity(self) -> dict[tuple[str, str], int]:
        return {(link.src, link.dst): link.bandwidth for link in self.links}


@st.composite
def worlds(draw: st.DrawFn, *, least_flow: int = 1, mixed: bool = True) -> World:
    """Up to seven nodes on random wires of at least 4 Mbit/s; jobs whose reservations leave every link its headroom.

    Paths are random walks without repetition, not only shortest ones. With ``mixed`` false, capacities are the same
    both ways and opposite flows take the same way.
    """
    names = [f"n{i}" for i in range(draw(st.integers(2, 7)))]
    nodes = [
        node(name, i + 1, network=draw(st.sampled_from(["tc", "tc", "tc", "none"])) if mixed else "tc")
        for i, name in enumerate(names)
    ]
    every = list(itertools.combinations(names, 2))
    wires = draw(st.lists(st.sampled_from(every), min_size=1, max_size=12, unique=True))
    links = [link for a, b in wires for link in wire(a, b, draw(st.integers(4, 1000)) * MBIT)]
    if mixed:
        links = draw(st.lists(st.sampled_from(links), min_size=1, unique_by=lambda link: (link.src, link.dst)))
    neighbours: dict[str, list[str]] = defaultdict(list)
    for link in links:
        neighbours[link.src].append(link.dst)
    left = {(link.src, link.dst): reservable(link.bandwidth) for link in links}
    numbers = itertools.count(1)
    jobs = []
    for j in range(draw(st.integers(0, 3))):
        placement = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
        flows: dict[tuple[int, int], tuple[int, list[str]]] = {}
        for a, b in draw(
            st.lists(st.sampled_from(list(itertools.product(range(len(placement)), repeat=2))), max_size=6)
        ):
            if a == b or (a, b) in flows:
                continue
            if not mixed and (b, a) in flows:
                path: list[str] | None = flows[b, a][1][::-1]
            else:
                path = _walk(draw, neighbours, placement[a], placement[b])
            if path is None:
                continue
            hops = list(itertools.pairwise(path))
            room = min((left[hop] for hop in hops), default=MBIT)
            if room < least_flow:
                continue
            rate = draw(st.integers(least_flow, room))
            for hop in hops:
                left[hop] -= rate
            flows[a, b] = rate, path
        jobs.append(
            job(
                f"j{j}",
                placement,
                [(a, b, rate, path) for (a, b), (rate, path) in flows.items()],
                numbers=numbers,
                addresses=[f"10.77.{names.index(at) + 1}.{j * 8 + rank + 2}" for rank, at in enumerate(placement)],
            )
        )
    return World(nodes, links, jobs)


def _walk(draw: st.DrawFn, neighbours: dict[str, list[str]], src: str, dst: str) -> list[str] | None:
    path = [src]
    while path[-1] != dst:
        onward = [each for each in neighbours[path[-1]] if each not in path]
        if not onward:
            return None
        path.append(draw(st.sampled_from(onward)))
    return path


@given(worlds())
@settings(max_examples=60, deadline=None)
def test_every_flow_has_one_data_class_per_hop_where_it_leaves(world: World) -> None:
    planned = Planner().plan(world.view())
    for record in world.jobs:
        address = {each.task: each.address for each in record.allocations}
        for flow in record.reserved:
            found = Counter(
                (name, each.via)
                for name, document in planned.items()
                for each in document.classes
                if each.kind == "data" and each.number == flow.number
            )
            assert found == Counter(itertools.pairwise(flow.path))
            for name, via in itertools.pairwise(flow.path):
                (mine,) = (e for e in planned[name].classes if (e.kind, e.number, e.via) == ("data", flow.number, via))
                assert (mine.src, mine.dst) == (address[flow.src], address[flow.dst])
                assert (mine.rate, mine.job, mine.small_only) == (flow.rate, record.key, False)


@given(worlds())
@settings(max_examples=60, deadline=None)
def test_packets_follow_the_paths(world: World) -> None:
    """Policy routes are on transit nodes only, and with the first hop they lead each flow along its path."""
    planned = Planner().plan(world.view())
    where = {each.address: each.node for record in world.jobs for each in record.allocations}
    for name, document in planned.items():
        for policy in document.policies:
            assert where[policy.src] != name
            assert where[policy.dst] != name
        by_pair = Counter((policy.src, policy.dst) for policy in document.policies)
        assert all(count == 1 for count in by_pair.values()), "one packet, one way"
    for record in world.jobs:
        address = {each.task: each.address for each in record.allocations}
        for flow in record.reserved:
            pair = address[flow.src], address[flow.dst]
            at = flow.path[0]
            (endpoint,) = (each for each in planned[at].endpoints if each.address == pair[0])
            step = next(peer.via for peer in endpoint.peers if peer.address == pair[1])
            taken = [at]
            while step is not None:
                taken.append(step)
                step = next((p.via for p in planned[step].policies if (p.src, p.dst) == pair), None)
            assert taken == flow.path


@given(worlds())
@settings(max_examples=60, deadline=None)
def test_jobs_know_nothing_of_each_other(world: World) -> None:
    planned = Planner().plan(world.view())
    own = {record.key: {each.address for each in record.allocations} for record in world.jobs}
    for document in planned.values():
        for endpoint in document.endpoints:
            mine = own[endpoint.job]
            assert {peer.address for peer in endpoint.peers} <= mine - {endpoint.address}
            assert set(endpoint.hosts.values()) == mine
        for each in [*document.policies, *document.classes]:
            assert {each.src, each.dst} <= own[each.job]


@given(worlds())
@settings(max_examples=60, deadline=None)
def test_documents_name_only_what_is_there(world: World) -> None:
    planned = Planner().plan(world.view())
    links = world.capacity().keys()
    for name, document in planned.items():
        assert {(name, each.via) for each in [*document.policies, *document.classes]} <= links
        assert {(name, peer.via) for e in document.endpoints for peer in e.peers if peer.via} <= links
        used = Counter((each.kind, each.number, each.via) for each in document.classes)
        assert all(count == 1 for count in used.values())
    for record in world.jobs:
        for name in involved_nodes(record):
            assert record.key in planned[name].jobs, "its agent must be able to say that its share is in place"


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_rates_on_a_link_stay_within_its_capacity(world: World) -> None:
    """Whatever the flows' sizes, ways and the links' capacities; but for the least rate that a class has."""
    planned = Planner().plan(world.view())
    tc = {each.name for each in world.nodes if each.network == "tc"}
    for (src, dst), capacity in world.capacity().items():
        if src not in tc:
            continue
        classes = [each for each in planned[src].classes if each.via == dst]
        at_least = sum(LEAST_RATE for each in classes if each.kind == "return" and each.rate == LEAST_RATE)
        assert sum(each.rate for each in classes) + best_effort_rate(capacity) - at_least <= capacity


@given(worlds(least_flow=40_000, mixed=False))
@settings(max_examples=100, deadline=None)
def test_every_return_class_has_room_for_acknowledgements(world: World) -> None:
    """Where capacities and ways are the same in both directions: one frame of 66 bytes for two of 1514."""
    planned = Planner().plan(world.view())
    rates = {each.number: each.rate for d in planned.values() for each in d.classes if each.kind == "data"}
    for document in planned.values():
        for each in document.classes:
            if each.kind == "return":
                assert each.rate >= rates[each.number] * 66 / (2 * 1514) * 0.99


@given(worlds(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_same_state_gives_the_same_documents_in_whatever_order(world: World, random: object) -> None:
    shuffled = World(list(world.nodes), list(world.links), list(world.jobs))
    for part in (shuffled.nodes, shuffled.links, shuffled.jobs):
        random.shuffle(part)
    assert Planner().plan(shuffled.view()) == Planner().plan(world.view())


STEPS = ["end", "states", "released", "attempt", "rates", "moved", "node", "topology", "everything"]


@given(worlds(), worlds(), st.data())
@settings(max_examples=40, deadline=None)
def test_what_a_planner_remembers_never_shows(first: World, second: World, data: st.DataObject) -> None:
    """Jobs come, go and change, nodes and links too: always what planning from nothing gives."""
    planner, view = Planner(), first.view()
    for version in range(2, 6):
        assert _unstamped(planner.plan(view)) == _unstamped(Planner().plan(view))
        step = data.draw(st.sampled_from(STEPS))
        change: dict[str, object] = {"epoch": view.epoch, "version": version, "full": False}
        if step == "end" and view.jobs:
            change["jobs"] = [_over(data.draw(st.sampled_from(list(view.jobs.values()))))]
        elif step == "states":
            change["jobs"] = [each.model_copy(update={"state": JobState.PREPARING}) for each in view.jobs.values()]
        elif step == "released":
            over = [_over(each) for each in view.jobs.values()]
            change["jobs"] = [each.model_copy(update={"state": JobState.RESCHEDULING}) for each in over]
        elif step == "attempt":
            change["jobs"] = [each.model_copy(update={"attempt": each.attempt + 1}) for each in view.jobs.values()]
        elif step == "rates":
            change["jobs"] = [_slower(each) for each in view.jobs.values()]
        elif step == "moved":
            change["jobs"] = [_moved(each) for each in view.jobs.values()]
        elif step == "node":
            some = data.draw(st.sampled_from(list(view.nodes.values())))
            other = "none" if some.network == "tc" else "tc"
            change["nodes"] = [some.model_copy(update={"network": other, "version": version})]
        elif step == "topology":
            change["topology"] = Topology(version=version, links=second.links)
        elif step == "everything":
            change |= {"full": True, "epoch": f"e{version}", "nodes": second.nodes, "jobs": second.jobs}
            change["topology"] = Topology(version=version, links=second.links)
        view.merge(Snapshot.model_validate(change))
    assert _unstamped(planner.plan(view)) == _unstamped(Planner().plan(view))


def _over(record: JobRecord) -> JobRecord:
    allocations = [each.model_copy(update={"state": "stopped"}) for each in record.allocations]
    return record.model_copy(update={"state": JobState.CANCELLED, "allocations": allocations})


def _slower(record: JobRecord) -> JobRecord:
    return record.model_copy(
        update={"reserved": [each.model_copy(update={"rate": each.rate // 2}) for each in record.reserved]}
    )


def _moved(record: JobRecord) -> JobRecord:
    """Within the subnets of its nodes."""
    allocations = [each.model_copy(update={"address": f"{each.address}1"}) for each in record.allocations]
    return record.model_copy(update={"allocations": allocations})


def _unstamped(documents: dict[str, DesiredNetwork]) -> dict[str, DesiredNetwork]:
    return {name: document.model_copy(update={"generation": 0}) for name, document in documents.items()}
