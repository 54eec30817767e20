"""Neighbours who replace their keys at the same moment do so one after the other."""

from __future__ import annotations

import pytest
from key_world import ALONE_S, STEP_S, KeyWorld

from ces_edge_agent.dataplane.wireguard.config import Neighbour, ahead_of
from ces_edge_agent.dataplane.wireguard.keys import (
    ALIVE_S,
    QUIET_S,
    RETRY_S,
    SETTLE_S,
    TRIAL_S,
    WAIT_S,
    new_key,
    public_of,
)

ROWS = [("a", "b"), ("b", "a"), ("a", "b", "c"), ("c", "a", "b"), ("b", "a", "c"), ("c", "b", "a")]
EACH_S = SETTLE_S + QUIET_S + 5.0  # one after the other takes so long for each


def rotate(world: KeyWorld, *names: str) -> dict[str, str]:
    """All at once; returns the keys that they have now."""
    for name in names:
        world.nodes[name].rotation.ask()
    return {name: world.nodes[name].public for name in names}


def cost_of_one() -> float:
    """For how long a link carries nothing while one of its ends replaces its key."""
    world = KeyWorld("a", "b")
    rotate(world, "a")
    world.run(1.0)
    assert world.run(EACH_S, until=world.settled)
    return world.longest()


@pytest.mark.parametrize("names", ROWS, ids="-".join)
def test_no_link_is_lost_for_longer_than_one_of_them_costs(names: tuple[str, ...]) -> None:
    world = KeyWorld(*names)
    before = rotate(world, *names)
    world.run(1.0)
    assert world.run(len(names) * EACH_S, until=world.settled)
    world.run(1.0)
    assert all(world.nodes[name].public != key for name, key in before.items())
    assert 0.0 < world.longest() <= cost_of_one() + STEP_S / 2
    assert all(len(found) <= 2 for found in world.outages.values()), "once for each end"


def test_those_who_do_not_see_each_other_fail_together_but_not_again() -> None:
    """Where the manager is slow to tell them of each other."""
    world = KeyWorld("a", "b", chances=(0.1, 0.9), blind=True)
    before = rotate(world, "a", "b")
    world.run(SETTLE_S + QUIET_S + 2 * TRIAL_S)
    assert world.longest() > TRIAL_S - 1.0
    assert {name: world.nodes[name].public for name in before} == before, "both are back at what the other knows"
    world.outages = {link: [] for link in world.links}
    assert world.run(1.5 * RETRY_S + ALONE_S, until=world.settled, step_s=1.0)
    assert world.longest() <= 2.0, "of two looks"


def test_one_that_tells_two_keys_for_ever_keeps_no_other_from_its_own() -> None:
    world = KeyWorld("a", "b")
    before = rotate(world, "b")
    world.nodes["a"].lies = [world.nodes["a"].public, public_of(new_key())]
    assert not world.run(WAIT_S, until=lambda: world.nodes["b"].public != before["b"])
    assert world.run(EACH_S, until=world.settled)
    assert world.nodes["b"].public != before["b"]
    assert world.longest() < 1.0


def test_those_who_go_first_are_neighbours_with_two_keys_and_an_earlier_name() -> None:
    one, two = (new_key(),), (new_key(), new_key())
    around = [Neighbour(name, name, keys, ("", 0)) for name, keys in (("a", one), ("b", two), ("d", two))]
    assert ahead_of("c", around) == {"b"}


def test_who_is_not_there_is_not_waited_for() -> None:
    """A device that went off half-way tells two keys until it is forgotten."""
    world = KeyWorld("a", "b")
    rotation = world.nodes["b"].rotation
    rotation.ask()
    rotation.look(world.now, [], {})
    for now in (world.now, world.now + SETTLE_S):
        rotation.look(now, rotation.keys.public, {"a": now - ALIVE_S}, {"a"})
    assert rotation.on_trial
