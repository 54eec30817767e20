"""What a policy sees and the moves it makes, against the objective, the checker and other units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_table import Table, instances

from ces_core.bandwidth.composite import allocation_of
from ces_core.checker import check
from ces_core.learned import schema
from ces_core.learned.episode import finish
from ces_core.learned.node_features import new_feature_scratch
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.model.plan import Plan, Result
from ces_core.search.diagnosis import SearchTrace

KNOWN = [name for name, _ in schema.NODE_FEATURES].index("known-end-above-least")


@pytest.mark.parametrize(("regime", "seed"), instances(range(12)))
def test_what_the_mask_admits_is_a_plan_that_scores_as_the_objective_says(regime: str, seed: int) -> None:
    table = Table(read_instance(random_instance(regime, seed)))
    rng = np.random.default_rng(seed)
    while not table.done():
        if not table.observe():
            return
        assert table.place(int(rng.choice(np.flatnonzero(table.mask))))
    score = finish(table.view, table.work, table.state, table.episode)
    allocation = allocation_of(table.problem, table.view, table.state)
    assignment = table.view.nodes[table.state.node_of].tolist()
    metrics = evaluate(table.problem, assignment, allocation.paths, allocation.bandwidth)
    assert score == pytest.approx(metrics.composite, abs=1e-9)
    plan = Plan.of(table.problem, assignment, allocation.paths, allocation.bandwidth)
    answer = Result("policy", SearchTrace.of(table.problem).considered, plan, metrics).to_dict()
    assert check(random_instance(regime, seed), answer) == []


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), regime=st.sampled_from(sorted(REGIMES)))
def test_numbers_are_finite_and_bounded_and_looking_changes_nothing(seed: int, regime: str) -> None:
    table = Table(read_instance(random_instance(regime, seed)))
    rng = np.random.default_rng(seed)
    while not table.done() and table.observe():
        seen = table.nodes.copy(), table.context.copy(), table.mask.copy()
        assert np.isfinite(seen[0]).all()
        assert np.isfinite(seen[1]).all()
        assert np.abs(seen[0]).max() <= schema.LIMIT
        assert np.abs(seen[1]).max() <= schema.LIMIT
        assert not seen[0][~seen[2]].any()
        node = int(rng.choice(np.flatnonzero(seen[2])))
        assert table.place(node)
        table.take_back()
        table.observe()
        for before, after in zip(seen, (table.nodes, table.context, table.mask), strict=True):
            np.testing.assert_allclose(after, before, atol=1e-4)
        assert table.place(node)


def test_units_do_not_matter() -> None:
    data = random_instance("tight", 7)
    first, second = Table(read_instance(data)), Table(read_instance(scaled(data)))
    for _ in range(2):
        assert first.observe() == second.observe()
        np.testing.assert_allclose(first.nodes, second.nodes, atol=1e-4)
        np.testing.assert_allclose(first.context, second.context, atol=1e-4)
        node = int(np.flatnonzero(first.mask)[0])
        assert first.place(node)
        assert second.place(node)


def scaled(data: dict[str, Any]) -> dict[str, Any]:
    """The same instance with CPU in other units, and memory and bandwidth in yet others."""

    def times(thing: dict[str, Any], **factors: float) -> dict[str, Any]:
        return thing | {key: thing[key] * factor for key, factor in factors.items()}

    cpu, memory, rate = 1000.0, 2.0**20, 1e6
    nodes = [times(n, cpu=cpu, cpu_used=cpu, memory=memory, memory_used=memory) for n in data["nodes"]]
    tasks = [times(t, cpu=cpu, memory=memory) for t in data["job"]["tasks"]]
    flows = [times(f, min=rate, max=rate) for f in data["job"]["flows"]]
    links = [times(link, bandwidth=rate) for link in data["links"]]
    return {"nodes": nodes, "links": links, "job": data["job"] | {"tasks": tasks, "flows": flows}}


@pytest.mark.parametrize(("cpu", "blocked"), [(5.9, 1.0), (5.0, 0.0)])
def test_a_dead_end_is_seen_one_step_ahead(cpu: float, blocked: float) -> None:
    """The first task fits on the large node alone; so does the next, where it asks for 5.9."""
    data = {
        "nodes": [{"name": "large", "cpu": 6}, {"name": "small", "cpu": 5.5}],
        "job": {"tasks": [{"name": "first", "cpu": 5.95}, {"name": "next", "cpu": cpu}]},
    }
    table = Table(read_instance(data))
    assert table.episode.order.tolist() == [0, 1]
    assert table.observe() == 1
    assert table.nodes[0, [name for name, _ in schema.NODE_FEATURES].index("next-blocked")] == blocked


@pytest.mark.parametrize("seed", range(8))
def test_the_cheapest_plan_that_was_seen_stays_known_while_it_is_followed(seed: int) -> None:
    """(Where bandwidth is scarce, a trial that is blocked may count as cheaper than a whole plan.)"""
    table = Table(read_instance(random_instance("thesis", seed)))
    while not table.done() and table.observe():
        above = table.nodes[:, KNOWN]
        assert above[table.mask].min() == 0.0
        node = int(np.argmin(np.where(table.mask, above, np.inf)))
        if np.isfinite(table.scratch.end[0]):
            node = int(table.scratch.ended[table.episode.order[table.episode.level[0]]])
            assert above[node] == 0.0
        assert table.place(node)


def test_a_plan_counts_for_nothing_once_something_is_placed_elsewhere() -> None:
    table, fresh = (Table(read_instance(random_instance("tight", 3))) for _ in range(2))
    table.observe()
    first, away = int(table.episode.order[0]), int(np.flatnonzero(table.mask)[0])
    for each in (table, fresh):
        assert each.place(away)
    table.observe()
    plan = table.scratch.ended
    plan[:] = np.flatnonzero(table.mask)[-1]
    table.scratch.end[0] = -1.0  # cheaper than any
    for there, counts in ((away, True), (away + 1, False)):
        plan[first] = there
        fresh.scratch = new_feature_scratch(*fresh.view.fits.shape, len(fresh.view.low))
        assert table.observe() == fresh.observe()
        assert (table.nodes[:, KNOWN] != fresh.nodes[:, KNOWN]).any() == counts


def test_the_hash_speaks_for_names_and_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema.schema_hash()
    assert before == schema.schema_hash()
    monkeypatch.setattr(schema, "NODE_FEATURES", (*schema.NODE_FEATURES[:-1], ("next-joins", 2.0)))
    assert schema.schema_hash() != before
