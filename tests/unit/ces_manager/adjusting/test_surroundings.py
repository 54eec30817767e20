"""Which changes call for a look at an application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ces_manager.adjusting.surroundings import LinkSeen, NodeSeen, Place, Seen, Surroundings, news

LINK, NODE = LinkSeen(100, 2000), NodeSeen(True, {"matrix": 1.0})
AROUND = Surroundings({("a", "b"): LINK, ("b", "c"): LINK}, {"a": NODE, "b": NODE, "c": NODE})
PLACE = Place(1, {"w-0": "a", "w-1": "b"}, {("w-0", "w-1"): (10, ("a", "b"))}, {"cam": "a"})
SEEN = Seen(AROUND, PLACE)


def link(src: str, dst: str, capacity: int = 100, delay: int = 2000) -> Surroundings:
    return replace(AROUND, links={**AROUND.links, (src, dst): LinkSeen(capacity, delay)})


def node(name: str, open: bool = True, speeds: Mapping[str, float] = NODE.speeds) -> Surroundings:
    return replace(AROUND, nodes={**AROUND.nodes, name: NodeSeen(open, speeds)})


@pytest.mark.parametrize(
    ("around", "told"),
    [
        (AROUND, []),
        (link("a", "b", delay=40_000), ["link a -> b has changed"]),
        (link("a", "b", capacity=50), ["link a -> b has changed"]),
        (link("a", "b", capacity=0), ["link a -> b is down"]),
        (link("b", "c", delay=40_000), []),
        (link("b", "c", capacity=0), []),
        (link("b", "c", delay=1000), ["link b -> c has changed"]),
        (link("b", "c", capacity=200), ["link b -> c has changed"]),
        (link("c", "d"), ["link c -> d is up"]),
        (replace(AROUND, links={("b", "c"): LINK}), ["link a -> b is down"]),
        (node("d"), ["node d takes work"]),
        (node("d", open=False), []),
        (node("c", open=False), []),
        (node("a", open=False), []),
        (node("c", speeds={"matrix": 2.0}), ["node c was measured again"]),
        (node("c", speeds={"matrix": 2.0}, open=False), []),
        (node("a", speeds={"matrix": 0.5}), ["node a was measured again"]),
    ],
)
def test_what_may_be_worse_here_or_better_elsewhere_is_news(around: Surroundings, told: list[str]) -> None:
    assert news(SEEN, Seen(around, PLACE)) == told


def test_where_it_is_a_closed_node_that_was_measured_again_is_news_too() -> None:
    closed, slower = node("a", open=False), node("a", open=False, speeds={"matrix": 0.5})
    assert news(Seen(closed, PLACE), Seen(slower, PLACE)) == ["node a was measured again"]


def test_what_comes_back_is_news() -> None:
    assert news(Seen(link("b", "c", capacity=0), PLACE), SEEN) == ["link b -> c is up"]
    assert news(Seen(node("c", open=False), PLACE), SEEN) == ["node c takes work"]


def test_a_user_that_moved_and_another_place_are_news() -> None:
    moved = replace(PLACE, users={"cam": "c"})
    assert news(SEEN, Seen(AROUND, moved)) == ["user cam is at c now"]
    assert news(SEEN, Seen(AROUND, replace(PLACE, users={}))) == []
    other = replace(PLACE, tasks={"w-0": "a", "w-1": "c"})
    assert news(SEEN, Seen(AROUND, other)) == ["its place has changed"]
    rate = replace(PLACE, flows={("w-0", "w-1"): (20, ("a", "b"))})
    assert news(SEEN, Seen(AROUND, rate)) == ["its place has changed"]


def test_a_new_attempt_was_placed_for_what_is_there() -> None:
    assert news(SEEN, Seen(link("a", "b", capacity=0), replace(PLACE, attempt=2))) == []
