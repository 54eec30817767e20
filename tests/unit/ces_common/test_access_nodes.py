"""Which node a user's requests enter at."""

from __future__ import annotations

import pytest
from cluster_state import node
from hypothesis import given
from hypothesis import strategies as st

from ces_common.access_nodes import EARTH_M, Uncovered, access_node, access_nodes, distance_m
from ces_common.application import Location, User
from ces_common.messages.profiles import Position
from ces_common.messages.records import NodeRecord

PLACES = st.builds(Position, lat=st.floats(-90, 90), lon=st.floats(-180, 180))


def at(name: str, lat: float, lon: float, coverage: float | None) -> NodeRecord:
    return node(name, profile={"position": {"lat": lat, "lon": lon}, "coverage": coverage})


@given(PLACES, PLACES)
def test_a_distance_is_symmetric_and_at_most_half_around(one: Position, other: Position) -> None:
    assert distance_m(one, other) == pytest.approx(distance_m(other, one))
    assert 0 <= distance_m(one, other) <= EARTH_M * 3.1416
    assert distance_m(one, one) == 0


def test_a_degree_of_latitude_is_about_111_km() -> None:
    assert distance_m(Position(lat=0, lon=0), Position(lat=1, lon=0)) == pytest.approx(111_195, rel=1e-4)


def test_the_nearest_of_those_that_reach() -> None:
    nodes = [at("near", 0, 0.0001, 5), at("wide", 0, 0.001, 1000), at("other", 0, 0.002, 1000)]
    assert access_node(Location(lat=0, lon=0), nodes) == "wide"
    assert access_node(Location(lat=0, lon=0.0001), nodes) == "near"


def test_of_equally_near_ones_the_first_by_name() -> None:
    nodes = [at("b", 0, 0.001, 1000), at("a", 0, -0.001, 1000)]
    assert access_node(Location(lat=0, lon=0), nodes) == "a"


def test_a_node_without_coverage_reaches_only_where_it_is() -> None:
    with pytest.raises(Uncovered, match="nearest, a, is 111 m away and reaches 0 m: move the user"):
        access_node(Location(lat=0, lon=0.001), [at("a", 0, 0, None)])


def test_a_refusal_names_the_users_field() -> None:
    users = [User(name="here", at=Location(node="a")), User(name="gone", at=Location(node="x"))]
    with pytest.raises(Uncovered, match=r"^users\[1\]\.at: no node is named x; ces get nodes lists"):
        access_nodes(users, [node("a")])
    assert access_nodes(users[:1], [node("a")]) == {"here": "a"}
