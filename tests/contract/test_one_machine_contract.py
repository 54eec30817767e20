"""A copy of a node's card, with its credential and state, starts on a second machine: one of the two holds the node's
lease, the other is refused until that has surely ended. On both databases."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_parts import FakeTime
from databases import KINDS, new_database
from manager_world import World

from ces_edge_agent.lease import Lease
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.nodes.heartbeats import Asker, ended_leases, renew_leases


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(new_database(request.param, tmp_path))
    made.add_nodes("a", "b")
    yield made
    made.close()


def ask(world: World, machine: str, boot: str = "b", detector: FailureDetector | None = None) -> bool:
    """Whether the machine has the lease of node a now."""
    ended = ended_leases(detector or world.failure_detector, ["a"], world.timeouts)
    return renew_leases(world.uow, [Asker("a", boot, machine)], world.now, ended)["a"].held


def lease_and_margin(world: World) -> float:
    return world.timeouts.lease_s + world.timeouts.margin_s


def test_an_agent_that_starts_again_on_its_machine_goes_on_at_once(world: World) -> None:
    assert ask(world, "one", "first start")
    assert ask(world, "one", "second start")


def test_a_second_machine_is_refused_while_the_first_is_heard(world: World) -> None:
    assert ask(world, "one")
    for _ in range(100):
        world.wait(2)
        assert not ask(world, "two")
        assert ask(world, "one")


def test_it_gets_the_lease_once_the_first_has_been_silent_and_then_the_first_is_refused(world: World) -> None:
    assert ask(world, "one")
    world.wait(lease_and_margin(world))
    world.look()
    assert not ask(world, "two")
    world.wait(1)
    world.look()
    assert ask(world, "two")
    assert not ask(world, "one")
    assert ask(world, "two")


def test_what_another_manager_has_heard_meanwhile_counts(world: World) -> None:
    """This one looked when the first machine had been silent for long; since then that was heard again."""
    assert ask(world, "one")
    world.wait(lease_and_margin(world) + 1)
    world.look()
    behind = ended_leases(world.failure_detector, ["a"], world.timeouts)
    assert ask(world, "one")
    assert not renew_leases(world.uow, [Asker("a", "b", "two")], world.now, behind)["a"].held
    assert ask(world, "one")


def test_a_manager_that_has_just_started_passes_no_lease_on(world: World) -> None:
    assert ask(world, "one")
    world.wait(lease_and_margin(world) + 1)
    world.restart()
    world.look()
    assert not ask(world, "two")


def test_an_agent_that_does_not_name_its_machine_is_not_held_up(world: World) -> None:
    """Of an earlier release; so is its successor, once its machine is named."""
    assert ask(world, "")
    assert ask(world, "one")
    assert ask(world, "")


def test_a_refused_machine_holds_up_no_other_node(world: World) -> None:
    assert ask(world, "one")
    askers = [Asker("a", "b", "two"), Asker("b", "b", "its own")]
    joined = renew_leases(world.uow, askers, world.now)
    assert {node: each.held for node, each in joined.items()} == {"a": False, "b": True}


@pytest.mark.parametrize("seed", range(2))
def test_never_do_both_hold_it(world: World, tmp_path: Path, seed: int) -> None:
    """Each machine is cut off and heard again at random, for seconds or for minutes."""
    dice, time = random.Random(seed), FakeTime()
    leases = {name: Lease(_made(tmp_path / name), time.clocks()) for name in ("one", "two")}
    cut, holders = dict.fromkeys(leases, 0), set[str]()
    for _ in range(400):
        world.wait(1)
        time.passes(1)
        world.expire()
        for name, lease in leases.items():
            cut[name] = max(cut[name] - 1, 0) or (dice.choice([5, 60, 120]) if dice.random() < 0.02 else 0)
            if time.steady % 2 and not cut[name]:
                if ask(world, name):
                    lease.renew(time.steady, world.timeouts.lease_s)
                else:
                    lease.give_up()
        holding = {name for name, lease in leases.items() if lease.holds()}
        assert len(holding) < 2
        holders |= holding
    assert holders == {"one", "two"}, "both had it, one after the other"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
