"""Plans that quick rules come to, and what moving their tasks makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_table import Table, instances

from ces_core.generate import REGIMES, random_instance
from ces_core.instance import read_instance
from ces_core.kernels.state import State
from ces_core.policy.ending import end_of
from ces_core.policy.judging import best_next, link_spread, rate_loss

UNCHANGED = ("free", "use", "node_sums", "spare", "reserve", "link_use", "link_sums")
COSTS = np.False_


def looked(regime: str, seed: int) -> Table:
    """A game at its first task, whose nodes were looked at and whose cheapest plan was then forgotten."""
    table = Table(read_instance(random_instance(regime, seed)))
    table.observe()
    table.sight.end[0] = math.inf
    return table


def by_the_rule(table: Table) -> float:
    """What the plan costs that puts each task where it costs least at once; infinite where one finds no place."""
    while not table.done():
        task = int(table.episode.order[table.episode.level[0]])
        node = best_next(table.view, table.state, table.episode, table.sight, task)[1]
        if node < 0 or not table.place(node):
            return math.inf
    flows = range(len(table.view.low))
    lost = sum(rate_loss(table.view, f, table.state.guess[f]) for f in flows) / max(len(flows), 1)
    return 0.5 * (imbalance(table) + table.view.weights[2] * link_spread(table.view, table.state) + lost)


def imbalance(table: Table) -> float:
    use = table.state.use[:, : len(table.view.nodes)]
    return float(sum(weight * row.std() for weight, row in zip(table.view.weights, use, strict=False)))


def numbers(state: State) -> list[np.ndarray]:
    return [getattr(state, name).copy() for name in UNCHANGED]


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), regime=st.sampled_from(sorted(REGIMES)))
def test_a_trial_leaves_nothing_behind_but_a_plan_that_the_nodes_hold(seed: int, regime: str) -> None:
    table = looked(regime, seed)
    for node in np.flatnonzero(table.mask):
        before = numbers(table.state)
        assert table.place(int(node))
        table.episode.level[0] -= 1  # the task is there for a trial
        end_of(table.view, table.state, table.episode, table.sight, COSTS)
        table.episode.level[0] += 1
        table.take_back()
        for was, now in zip(before, numbers(table.state), strict=True):
            np.testing.assert_allclose(now, was, atol=1e-9)
    if np.isfinite(table.sight.end[0]):
        asked = np.zeros_like(table.view.free)
        for task, node in enumerate(table.sight.ended):
            assert table.view.fits[task, node]
            asked[:, node] += table.view.demand[task]
        assert (asked <= table.view.free + 1e-9).all()


@pytest.mark.parametrize(("regime", "seed"), instances(range(4)))
def test_moving_tasks_never_makes_a_plan_dearer(regime: str, seed: int) -> None:
    for node in np.flatnonzero(looked(regime, seed).mask):
        plain, table = looked(regime, seed), looked(regime, seed)
        assert plain.place(int(node))
        assert table.place(int(node))
        table.episode.level[0] -= 1
        end, blocked = end_of(table.view, table.state, table.episode, table.sight, COSTS)
        if blocked == 0.0:
            assert end <= by_the_rule(plain) + 1e-9
            assert table.sight.end[0] <= end + 1e-9  # there the task that is tried may move, too


def test_moving_tasks_finds_cheaper_plans() -> None:
    gains = []
    for seed in range(12):
        table = Table(read_instance(random_instance("thesis", seed)))
        table.observe()
        rule = by_the_rule(looked("thesis", seed))
        assert table.sight.end[0] <= rule + 1e-9
        gains.append(rule - table.sight.end[0])
    assert np.median(gains) > 0.001
