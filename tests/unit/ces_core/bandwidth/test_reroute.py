"""Running flows after a network change: which move, which lose rate, which gain rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.bandwidth.reroute import LEAST_GAIN, FlowChange, Running, reoptimise, reroute
from ces_core.model.parts import Link, Node
from ces_core.model.problem import Cluster

NODES = "abcd"
CLOSE = 1e-6
Hop = tuple[str, str]


@dataclass(frozen=True)
class Net:
    """Capacities by link, media by link, capacities of media."""

    links: dict[Hop, float]
    medium: dict[Hop, str]
    media: dict[str, float]

    def cluster(self) -> Cluster:
        links = [Link(a, b, room, medium=self.medium.get((a, b))) for (a, b), room in self.links.items()]
        return Cluster.make([Node(name, cpu=1) for name in NODES], links, self.media)

    def loads(self, flows: Sequence[Running]) -> dict[Hop | str, float]:
        load: defaultdict[Hop | str, float] = defaultdict(float)
        for flow in flows:
            for hop in pairwise(flow.path):
                load[hop] += flow.rate
                if hop in self.medium:
                    load[self.medium[hop]] += flow.rate
        return load

    def crowded(self, flows: Sequence[Running]) -> set[Hop | str]:
        """Links and media that carry more than they can."""

        def room(what: Hop | str) -> float:
            return self.media[what] if isinstance(what, str) else self.links.get(what, 0.0)

        return {what for what, load in self.loads(flows).items() if load > room(what) * (1 + CLOSE) + CLOSE}

    def uses(self, flow: Running) -> set[Hop | str]:
        hops = set(pairwise(flow.path))
        return {*hops, *(self.medium[hop] for hop in hops if hop in self.medium)}

    def broken(self, flow: Running) -> bool:
        return any(hop not in self.links for hop in pairwise(flow.path))


def after(flows: Sequence[Running], changes: dict[int, FlowChange]) -> list[Running]:
    changed = {i: replace(flows[i], path=given.path, rate=given.rate) for i, given in changes.items()}
    return [changed.get(i, flow) for i, flow in enumerate(flows)]


def ring(capacity: float = 95, without: Sequence[str] = (), **other: float) -> Net:
    """a - b - c - d - a, both ways; ``other``: capacities of some links."""
    hops = [pair for a, b in ("ab", "bc", "cd", "da") for pair in ((a, b), (b, a))]
    links = {(a, b): other.get(a + b, capacity) for a, b in hops if a + b not in without}
    return Net(links, {}, {})


def about(path: str, rate: float) -> FlowChange:
    return FlowChange(tuple(path), pytest.approx(rate))


def running(path: str, low: float, high: float, rate: float) -> Running:
    return Running(low, high, tuple(path), rate)


ONE = running("ab", 10, 50, 50)


def test_nothing_is_done_where_nothing_is_wrong() -> None:
    assert reroute(ring().cluster(), [ONE, running("bc", 10, 20, 10)]) == {}


def test_only_the_flow_on_the_dead_link_moves_and_takes_nothing_that_it_need_not() -> None:
    other = running("bc", 10, 80, 80)
    changes = reroute(ring(without=["ab", "ba"]).cluster(), [ONE, other, running("ba", 10, 50, 50)])
    assert changes.keys() == {0, 2}
    assert changes[0] == FlowChange(tuple("adcb"), 50)
    assert changes[2].path == tuple("bcda")
    assert changes[2].rate == pytest.approx(15)


def test_others_shrink_where_the_minimum_does_not_fit_otherwise() -> None:
    other = running("bc", 10, 90, 90)
    changes = reroute(ring(without=["ba"]).cluster(), [running("ba", 40, 50, 50), other])
    assert changes[0].rate >= 40
    assert changes[1].path == tuple("bc")
    assert changes[0].rate + changes[1].rate == pytest.approx(95)


def test_a_slow_link_takes_rate_from_its_flows_and_moves_none_that_still_fits() -> None:
    assert reroute(ring(ab=30).cluster(), [ONE]) == {0: about("ab", 30)}


def test_a_link_too_slow_for_the_minimums_loses_as_few_flows_as_will_do() -> None:
    flows = [running("ab", 10, 20, 20), running("ab", 20, 30, 30), running("ab", 15, 30, 30)]
    changes = reroute(ring(ab=35).cluster(), flows)
    assert [changes[i].path for i in sorted(changes)] == [tuple("adcb"), *[tuple("ab")] * 2][: len(changes)]
    assert all(flow.rate >= flow.low for flow in after(flows, changes))


def test_what_no_longer_fits_gets_what_there_is_and_the_rest_goes_on() -> None:
    net = ring(without=["ab"], ad=8)
    other = running("dc", 10, 50, 50)
    assert reroute(net.cluster(), [ONE, other]) == {0: about("adcb", 8)}


def test_without_any_path_the_old_one_stays_at_rate_zero() -> None:
    net = ring(without=["ab", "ad"])
    assert reroute(net.cluster(), [ONE]) == {0: FlowChange(tuple("ab"), 0)}
    assert reoptimise(net.cluster(), [replace(ONE, rate=0)]) == {}
    assert reoptimise(ring().cluster(), [replace(ONE, rate=0)]) == {0: about("ab", 50)}


def test_free_capacity_is_used_and_a_detour_left_where_that_pays() -> None:
    flows = [running("adcb", 10, 50, 10), running("dc", 10, 95, 10)]
    changes = reoptimise(ring().cluster(), flows)
    assert changes[0] == about("ab", 50)
    assert changes[1].rate == pytest.approx(95)


def test_nothing_is_touched_for_next_to_nothing() -> None:
    assert reoptimise(ring().cluster(), [running("ab", 10, 50, 50 - 40 * LEAST_GAIN), running("bc", 1, 2, 2)]) == {}


def test_a_flow_without_a_choice_of_rates_gets_its_rate_back() -> None:
    """Its satisfaction is the same at any rate, so the composite does not change."""
    flows = [running("ab", 5, 5, 0), running("bc", 5, 5, 5)]
    assert reoptimise(ring().cluster(), flows) == {0: about("ab", 5)}


@st.composite
def situations(draw: st.DrawFn) -> tuple[Net, list[Running]]:
    """Flows that fitted before links died and shrank."""
    pairs = list(permutations(NODES, 2))
    links = {hop: float(draw(st.integers(5, 100))) for hop in draw(st.lists(st.sampled_from(pairs), unique=True))}
    medium = {hop: "air" for hop in links if draw(st.integers(0, 3)) == 0}
    net = Net(links, medium, {"air": float(draw(st.integers(20, 150)))})
    flows: list[Running] = []
    ways = [way for size in (2, 3, 4) for way in permutations(NODES, size) if set(pairwise(way)) <= links.keys()]
    for path in draw(st.lists(st.sampled_from(ways), max_size=6)) if ways else ():
        low, extra = float(draw(st.integers(1, 20))), float(draw(st.integers(0, 40)))
        for rate in (low + extra, low):
            flow = Running(low, low + extra, path, rate)
            if not net.crowded([*flows, flow]):
                flows.append(flow)
                break
    hurt = {
        hop: room * draw(st.sampled_from([1.0, 1.0, 0.5, 0.1])) for hop, room in links.items() if draw(st.booleans())
    }
    kept = {hop: room for hop, room in links.items() if hop in hurt or draw(st.booleans())}
    return Net({**kept, **hurt}, medium, net.media), flows


@settings(max_examples=60, deadline=None)
@given(situations())
def test_rerouting_moves_and_takes_no_more_than_it_must(situation: tuple[Net, list[Running]]) -> None:
    net, flows = situation
    changes = reroute(net.cluster(), flows)
    result = after(flows, changes)
    assert not net.crowded([flow for flow in result if not net.broken(flow)])
    crowded = net.crowded([flow for flow in flows if not net.broken(flow)])
    concerned = [i for i, flow in enumerate(flows) if net.broken(flow) or net.uses(flow) & crowded]
    for i, (before, flow) in enumerate(zip(flows, result, strict=True)):
        assert flow.rate <= flow.high * (1 + CLOSE)
        if i not in concerned:
            assert flow.path == before.path
            assert flow.rate >= flow.low * (1 - CLOSE)
        if net.broken(flow):
            assert (flow.path, flow.rate) == (before.path, 0)
        if i in changes and i not in concerned:  # it made room for one that had to move
            assert any(net.uses(flow) & net.uses(result[k]) for k in concerned)
        if flow.rate < flow.low * (1 - CLOSE):
            others = [replace(other, rate=min(other.rate, other.low)) for k, other in enumerate(result) if k != i]
            others = [other for other in others if not net.broken(other)]
            for size in (2, 3, 4):
                for way in permutations(NODES, size):
                    moved = replace(flow, path=way, rate=flow.low)
                    if (way[0], way[-1]) == (flow.path[0], flow.path[-1]) and not net.broken(moved):
                        assert net.crowded([*others, moved]), f"{way} has room for {i}"
    assert reroute(net.cluster(), result) == {}


@settings(max_examples=30, deadline=None)
@given(situations())
def test_filling_again_ends_and_overbooks_nothing(situation: tuple[Net, list[Running]]) -> None:
    net, flows = situation
    for look in range(int(1 / LEAST_GAIN)):
        changes = reoptimise(net.cluster(), flows)
        if not changes:
            break
        before, flows = flows, after(flows, changes)
        assert not net.crowded([flow for flow in flows if not net.broken(flow)])
        for flow, old in zip(flows, before, strict=True):
            assert flow.rate <= flow.high * (1 + CLOSE)
            assert look == 0 or flow.rate >= min(flow.low, old.rate) * (1 - CLOSE)  # the first look also mends
    else:
        raise AssertionError("there is no end to it")
