"""What the rules choose, in worlds that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amounts_world import IMAGE, LANGUAGE, begun, small_setting

from ces_core.amounts.choice import no_choice
from ces_core.amounts.rules import RULES, decide
from ces_core.amounts.speeds import Speeds, speeds
from ces_core.amounts.thrift import lengths
from ces_sim.amounts import place_chosen, walk

Chosen = list[tuple[int, int, int]]


def chosen(rule: str, world: Any, tasks: Any, state: Any, chance: list[list[float]] | None = None) -> Chosen:
    agents = len(world.capacity)
    choice = no_choice(1, agents)
    numbers = np.zeros((agents, 2)) if chance is None else np.array(chance)
    ends = lengths(Speeds(world.steady, world.bending))
    decide(RULES[rule], world, ends, tasks.kind[0], state, 0, numbers, choice)
    place_chosen(state, 0, choice)
    return list(zip(*(part[0].tolist() for part in choice), strict=True))


def test_the_rule_random_draws_a_task_and_amounts_of_which_waiting_is_one() -> None:
    # 4 x 4 amounts and waiting: the 17 cells are drawn with equal odds.
    setting = small_setting((5, 4))
    for chance, expected in (
        ([0.0, 0.0], (0, 0, 0)),
        ([0.0, 1.5 / 17], (0, 2, 1)),
        ([0.6, 5.5 / 17], (1, 3, 1)),
        ([0.99, 0.999], (1, 5, 4)),
    ):
        assert chosen("random", *begun(setting, [IMAGE, IMAGE]), [chance]) == [expected]


def test_who_draws_a_task_that_was_drawn_before_does_nothing() -> None:
    setting = small_setting((5, 4), (5, 4))
    found = chosen("least", *begun(setting, [IMAGE, IMAGE]), [[0.0, 0.0], [0.1, 0.0]])
    assert found == [(0, 2, 1), (-1, 0, 0)]
    found = chosen("least", *begun(setting, [IMAGE, IMAGE]), [[0.0, 0.0], [0.9, 0.0]])
    assert found == [(0, 2, 1), (1, 2, 1)]


def test_optimus_deals_what_it_believes_to_gain_most() -> None:
    """With a speed of one for each GPU, a second GPU saves 1/2 of a task, a third 1/6 for each that it has: GPUs
    alternate, and CPUs gain nothing."""
    world, tasks, state = begun(small_setting((16, 5)), [IMAGE, IMAGE, IMAGE])
    world.fit[:] = (1.0, 0.0, 0.0, 0.0, 0.0)
    assert chosen("optimus", world, tasks, state) == [(0, 2, 5)]
    assert chosen("optimus", world, tasks, state) == [(1, 2, 2)]
    assert state.amounts[0, :2].tolist() == [[2, 3], [2, 2]]
    assert state.free[0, 0].tolist() == [12, 0]
    state.progress[0, 0] = 0.9  # little is saved there: 0.1/2, then 0.1/12; the others take 1/2 each
    assert chosen("optimus", world, tasks, state) == [(2, 2, 2)]
    assert state.amounts[0].tolist() == [[2, 1], [2, 2], [2, 2]]


def test_tiresias_gives_the_first_task_everything_and_then_those_with_less_service() -> None:
    """As in the first slots of the public runs: 16 CPUs and 16 GPUs, or 1 GPU where it is not elastic."""
    elastic = small_setting((16, 16), elastic=True)
    world, tasks, state = begun(elastic, [IMAGE, LANGUAGE])
    assert chosen("tiresias", world, tasks, state) == [(0, 16, 16)]
    walk(world, tasks, state, 0)
    assert state.service[0].tolist() == [16, 0]
    # The second has had nothing: it gets GPUs one by one, until it may have no more.
    assert chosen("tiresias", world, tasks, state) == [(1, 16, 16)]
    assert state.amounts[0].tolist() == [[0, 0], [16, 16]]
    stiff = small_setting((16, 16), elastic=False)
    world, tasks, state = begun(stiff, [IMAGE, LANGUAGE])
    assert chosen("tiresias", world, tasks, state) == [(0, 16, 1)]
    assert chosen("tiresias", world, tasks, state) == [(1, 8, 1)]
    assert state.amounts[0].tolist() == [[8, 1], [8, 1]]


@pytest.mark.parametrize("rule", ["optimus", "tiresias"])
def test_no_more_tasks_run_than_fit_at_the_least_amounts(rule: str) -> None:
    world, tasks, state = begun(small_setting((4, 8)), [IMAGE] * 4)
    found = [chosen(rule, world, tasks, state)[0][0] for _ in range(3)]
    assert found == [0, 1, -1]


def test_thrifty_gives_an_image_task_the_least_and_a_lone_language_task_all_gpus() -> None:
    setting = small_setting((16, 16))
    assert chosen("thrifty", *begun(setting, [IMAGE])) == [(0, 2, 1)]
    # 2 slots with 10 GPUs or more, and nobody waits: the fewest that do.
    (slot, cpus, gpus), *_ = chosen("thrifty", *begun(setting, [LANGUAGE]))
    assert (slot, cpus) == (0, 2)
    assert lengths(speeds(setting))[LANGUAGE, 2, gpus - 1 : gpus + 1].tolist() == [3, 2]


def test_thrifty_waits_for_room_rather_than_run_for_twenty_slots() -> None:
    world, tasks, state = begun(small_setting((16, 16)), [LANGUAGE])
    state.free[0, 0] = (16, 1)
    assert chosen("thrifty", world, tasks, state) == [(-1, 0, 0)]


def test_thrifty_lets_the_emptiest_cluster_choose_first_and_no_task_goes_twice() -> None:
    """The language task costs the larger cluster least: 2 slots of 10 GPUs, 2 * (1 + 10/16), against 4 * (1 + 2/16)."""
    for capacity, expected in ((((8, 8), (16, 16)), [0, 1]), (((16, 16), (8, 8)), [1, 0])):
        found = chosen("thrifty", *begun(small_setting(*capacity), [IMAGE, LANGUAGE]))
        assert [slot for slot, _, _ in found] == expected
