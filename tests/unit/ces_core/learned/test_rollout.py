"""Plans that quick rules come to, and what moving their tasks makes of them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_table import Table, instances

from ces_core.learned.node_features import best_next, rate_loss
from ces_core.learned.rollout import end_of
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.state import link_spread

SUMS = ("free", "use", "node_sums", "spare", "reserve", "link_use", "link_sums", "guess", "trial_path")
COSTS = np.False_


def looked(regime: str, seed: int, placed: int = 0) -> Table | None:
    """A game with so many tasks placed by chance and its nodes looked at, but no whole plan remembered; None where it
    ends before that."""
    table = Table(read_instance(random_instance(regime, seed)))
    rng = np.random.default_rng(seed)
    found = table.observe()
    for _ in range(placed):
        if not found or not table.place(int(rng.choice(np.flatnonzero(table.mask)))) or table.done():
            return None
        found = table.observe()
    table.scratch.end[0] = math.inf
    return table if found else None


def trial(table: Table, node: int) -> tuple[float, float]:
    """(cost, blocked) of the end with the next task on ``node``."""
    assert table.place(node)
    table.episode.level[0] -= 1  # it is there for a trial
    end = end_of(table.view, table.state, table.episode, table.scratch, COSTS)
    table.episode.level[0] += 1
    table.take_back()
    return float(end[0]), float(end[1])


def cost(table: Table) -> float:
    """What the plan costs, once all tasks are placed, at the rates that flows may expect on the way."""
    flows = range(len(table.view.low))
    lost = float(sum(rate_loss(table.view, f, table.state.guess[f]) for f in flows)) / max(len(flows), 1)
    use = table.state.use[:, : len(table.view.nodes)]
    uneven = float(sum(weight * row.std() for weight, row in zip(table.view.weights, use, strict=False)))
    return 0.5 * float(uneven + table.view.weights[2] * link_spread(table.view, table.state) + lost)


def by_the_rule(table: Table) -> float:
    """What the plan costs that puts each task where it costs least at once; infinite where one finds no place."""
    while not table.done():
        task = int(table.episode.order[table.episode.level[0]])
        node = best_next(table.view, table.state, table.episode, table.scratch, task)[1]
        if node < 0 or not table.place(node):
            return math.inf
    return cost(table)


def followed(table: Table) -> float:
    """What the remembered plan costs who places its tasks in their order."""
    while not table.done():
        assert table.place(int(table.scratch.ended[table.episode.order[table.episode.level[0]]]))
    return cost(table)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), regime=st.sampled_from(sorted(REGIMES)), placed=st.integers(0, 3))
def test_trials_leave_nothing_behind_but_a_plan_that_can_be_followed(seed: int, regime: str, placed: int) -> None:
    table = looked(regime, seed, placed)
    if table is None:
        return
    so_far, carried = table.episode.order[:placed], table.episode.trail[: table.episode.carried[placed]]
    for node in np.flatnonzero(table.mask):
        before = {name: getattr(table.state, name).copy() for name in SUMS}
        where = table.episode.placement[so_far].copy()
        trial(table, int(node))
        for name, was in before.items():
            now = getattr(table.state, name)
            some = carried if name in ("guess", "trial_path") else slice(None)
            np.testing.assert_allclose(now[some], was[some], atol=1e-9)
        assert (table.episode.placement[so_far] == where).all()
        assert table.episode.is_open.sum() == len(table.episode.order) - placed
    if np.isfinite(table.scratch.end[0]):
        assert (table.scratch.ended[so_far] == table.episode.placement[so_far]).all()
        followed(table)


def test_what_is_remembered_is_what_following_it_costs_but_for_other_paths() -> None:
    apart = []
    for regime, seed in instances(range(25)):
        table = looked(regime, seed)
        if table is None:
            continue
        for node in np.flatnonzero(table.mask):
            trial(table, int(node))
        if np.isfinite(table.scratch.end[0]):
            apart.append(abs(followed(table) - table.scratch.end[0]))
    assert len(apart) > 60
    assert np.mean(np.array(apart) < 1e-9) > 0.8


def test_moving_tasks_makes_no_plan_dearer_and_many_cheaper() -> None:
    ends, rules, best, moved = [], [], [], []
    for regime, seed in instances(range(8)):
        first = looked(regime, seed)
        assert first is not None
        for node in np.flatnonzero(first.mask):
            table, plain = looked(regime, seed), looked(regime, seed)
            assert table is not None
            assert plain is not None
            end, blocked = trial(table, int(node))
            assert plain.place(int(node))
            if blocked == 0.0:
                ends.append(end)
                rules.append(by_the_rule(plain))
                best.append(table.scratch.end[0])
                moved.append(table.scratch.ended[table.episode.order[0]] != node)
    ended, ruled, known = np.array(ends), np.array(rules), np.array(best)
    assert (ended <= ruled + 1e-9).all()
    assert (known <= ruled + 1e-9).all()
    assert np.mean(ruled - ended) > 0.01, "tasks to come are moved"
    assert np.mean(moved) > 0.1, "and so is the one that is tried, for the plan that is remembered"
