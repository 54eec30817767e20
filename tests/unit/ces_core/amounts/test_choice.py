"""Which amounts may be chosen, and who gets a task that several agents chose."""

from __future__ import annotations

import numpy as np
import pytest
from amounts_world import IMAGE, LANGUAGE, begun, small_setting

from ces_core.amounts.choice import allowed_amounts, lost_conflicts, may_place


def test_amounts_go_from_the_least_to_what_is_free_and_may_be_given() -> None:
    world, _, state = begun(small_setting((5, 3), (40, 40)), [IMAGE])
    mask = np.zeros((17, 17), dtype=np.bool_)
    allowed_amounts(world, state, 0, 0, mask)
    expected = {(0, 0)} | {(cpus, gpus) for cpus in (2, 3, 4, 5) for gpus in (1, 2, 3)}
    assert set(map(tuple, np.argwhere(mask).tolist())) == expected
    allowed_amounts(world, state, 0, 1, mask)
    assert mask[16, 16]
    assert mask.sum() == 15 * 16 + 1
    state.free[0, 0] = (1, 3)
    allowed_amounts(world, state, 0, 0, mask)
    assert np.argwhere(mask).tolist() == [[0, 0]]
    assert not may_place(world, state, 0, 0)
    assert may_place(world, state, 0, 1)


@pytest.mark.parametrize(
    ("odds", "winner"),
    [
        # min(free / least) is 2, 4 and 4 places. ln p + places: 1.89 against 2.39 against 2.39 + ln 2.
        ([0.9, 0.2, 0.4], 2),
        # 1.999 against 1.39 and 1.70: the likelier choice outweighs the room.
        ([0.999, 0.05, 0.1], 0),
        ([0.5, 0.5, 0.1], 1),
    ],
)
def test_a_task_goes_to_the_likeliest_by_bayes_rule(odds: list[float], winner: int) -> None:
    world, _, state = begun(small_setting((4, 4), (8, 8), (8, 4)), [IMAGE, LANGUAGE])
    lost = np.zeros(3, dtype=np.bool_)
    lost_conflicts(world, state, 0, np.array([1, 1, 1]), np.array(odds), np.zeros(3), lost)
    assert np.flatnonzero(~lost).tolist() == [winner]


def test_the_odds_are_those_of_the_paper() -> None:
    """Whoever is likeliest by p(select) times the softmax, computed as it is written."""
    rng = np.random.default_rng(3)
    world, _, state = begun(small_setting((8, 8), (8, 8), (8, 8)), [IMAGE])
    for _ in range(200):
        state.free[0] = rng.integers(2, 9, size=(3, 2))
        odds, lost = rng.random(3), np.zeros(3, dtype=np.bool_)
        lost_conflicts(world, state, 0, np.zeros(3, dtype=np.int64), odds, np.zeros(3), lost)
        places = (state.free[0] / world.least).min(axis=1)
        posterior = odds * np.exp(places) / np.exp(places).sum()
        assert not lost[posterior.argmax()]
        assert lost.sum() == 2


def test_agents_that_chose_different_tasks_or_none_lose_nothing_and_ties_go_by_chance() -> None:
    world, _, state = begun(small_setting((8, 8), (8, 8), (8, 8)), [IMAGE, IMAGE])
    lost, even = np.ones(3, dtype=np.bool_), np.full(3, 0.5)
    lost_conflicts(world, state, 0, np.array([0, 1, -1]), even, np.zeros(3), lost)
    assert not lost.any()
    for chance, winner in (([0.1, 0.3, 0.2], 1), ([0.1, 0.0, 0.2], 2)):
        lost_conflicts(world, state, 0, np.array([0, 0, 0]), even, np.array(chance), lost)
        assert np.flatnonzero(~lost).tolist() == [winner]
