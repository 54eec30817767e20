"""``ces bench users`` on a few users, and the rules that it compares with."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import networkx as nx
import pytest
from gpu_tasks import bench

from ces_common.access_nodes import distance_m
from ces_core.model.plan import Plan, PlannedFlow
from ces_experiments.users import commands
from ces_experiments.users.city import City, Room, city
from ces_experiments.users.rules import RULES, instance


@pytest.fixture(scope="module")
def town() -> City:
    return city(3, 25)


def test_users_come_and_are_counted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = bench(commands.users, "--users", 25, "--seeds", 1, "--out", out).stdout
    assert "nearest-in-time" in shown
    ways = json.loads((out / "results.json").read_text())["ways"]
    assert ways["default"]["late"]["mean"] == 0, "hard deadlines are kept, or nobody is placed"
    for told in ways.values():
        assert told["in_time"]["mean"] + told["late"]["mean"] == pytest.approx(told["placed"]["mean"])
        assert told["after"]["25"]["mean"] == pytest.approx(25 * told["in_time"]["mean"])
    assert {"users.png", "users.csv"} <= {file.name for file in out.iterdir()}


def test_a_city_has_all_sites_on_one_network_and_covered_users_alone(town: City) -> None:
    assert (len(town.sites), len(town.users)) == (125, 25)
    assert nx.is_connected(town.delays)
    assert set(town.delays.nodes) == {site.name for site in town.sites}
    profiles = {site.name: site.profile for site in town.sites}
    for user in town.users:
        at = profiles[user.site]
        assert at.position is not None
        assert at.coverage is not None
        assert distance_m(user.position, at.position) <= at.coverage


@pytest.mark.parametrize("name", RULES)
def test_a_rule_names_places_with_room_and_none_twice(town: City, name: str) -> None:
    room = Room.of(town)
    full = next(iter(RULES[name](town, room, town.users[0])))["detect"]
    room.nodes[full] = [1e9, 1e9]
    places = [tuple(sorted(set(each.values()))) for each in islice(RULES[name](town, room, town.users[0]), 5)]
    assert len(set(places)) == 5
    assert all(full not in each for each in places)


def test_the_nearest_site_is_the_first(town: City) -> None:
    user, room = town.users[0], Room.of(town)
    room.nodes = {name: [0.0, 0.0] for name in room.nodes}
    metres = {site.name: distance_m(user.position, site.profile.position or user.position) for site in town.sites}
    assert next(RULES["nearest-site"](town, room, user))["track"] == min(metres, key=lambda name: metres[name])


def test_what_is_placed_is_taken(town: City) -> None:
    room, link = Room.of(town), town.links[0]
    ends = link["src"], link["dst"]
    plan = Plan({"detect": ends[0], "track": ends[1]}, (PlannedFlow("detect", "track", 3.0, ends),))
    before = [list(room.nodes[name]) for name in ends]
    room.take(plan, instance(town, room, town.users[0], hard=True)["job"]["tasks"])
    assert room.links[ends] == 3.0
    assert room.nodes[ends[0]] == [before[0][0] + 1.0, before[0][1] + 1.0]
    assert room.nodes[ends[1]] == [before[1][0] + 0.5, before[1][1] + 1.0]
