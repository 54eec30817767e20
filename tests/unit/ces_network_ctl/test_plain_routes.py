"""Plain routes that are carried over from other links are those that would be worked out from scratch."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.records import LinkRecord
from ces_network_ctl.plain_routes import PlainRoutes

NAMES = "abcdef"
PAIRS = list(itertools.permutations(NAMES, 2))
Ends = list[tuple[str, str]]


def links(ends: Ends) -> list[LinkRecord]:
    return [LinkRecord(src=src, dst=dst, bandwidth=1) for src, dst in ends]


def everything(routes: PlainRoutes) -> dict[tuple[str, str], list[str] | None]:
    return {(src, dst): routes.path(src, dst) for src, dst in PAIRS}


@given(st.lists(st.lists(st.sampled_from(PAIRS), unique=True), min_size=2, max_size=6))
def test_links_come_and_go(story: list[Ends]) -> None:
    routes = None
    for ends in story:
        routes = PlainRoutes(links(ends), routes, {*NAMES[:4]})
        assert everything(routes) == everything(PlainRoutes(links(ends)))


def test_what_a_change_does_not_touch_is_not_worked_out_again() -> None:
    chain = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    before = PlainRoutes(links(chain))
    everything(before)
    after = PlainRoutes(links([*chain, ("e", "f")]), before, {*NAMES})
    assert after._trees.keys() == {*"abcde"}, "only ways to f are new"
    assert PlainRoutes(links(chain[:2]), before, {*NAMES})._trees.keys() == {*"abc", "f"}


@given(st.lists(st.sampled_from(PAIRS), unique=True), st.sets(st.sampled_from(NAMES)), st.sampled_from(NAMES))
def test_the_hops_to_a_node_are_those_of_all_ways_to_it(ends: Ends, sources: set[str], dst: str) -> None:
    routes = PlainRoutes(links(ends))
    ways = [routes.path(src, dst) or [] for src in sources]
    assert routes.hops(sources, dst) == {at: via for way in ways for at, via in itertools.pairwise(way)}
