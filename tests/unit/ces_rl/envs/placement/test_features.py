"""Features by name: where they stand, and that what stands there is what the name says."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.learned.schema import CONTEXT, CONTEXT_FEATURES, LIMIT, NODE, NODE_FEATURES
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.draw import draw, kinds, new_random


def test_columns_are_numbered_as_the_schema_lists_them() -> None:
    assert [NODE["imbalance-cost"], NODE["known-end-above-least"]] == [0, len(NODE_FEATURES) - 1]
    assert CONTEXT["tasks-left"] == 0


def test_what_stands_in_a_column_is_what_its_name_says() -> None:
    """Those that can be read off the problem before any task is placed, from the definition alone."""
    pool = draw(new_random(4), kinds({"tight": 1.0}), 12)
    simulation = PlacementSimulation(12, SlotSize.of(pool))
    simulation.start(pool, np.arange(12))
    node_scale, context_scale = dict(NODE_FEATURES), dict(CONTEXT_FEATURES)
    for i in np.flatnonzero(simulation.running).tolist():
        view, _, episode = simulation.slot(i)
        task, tasks = int(episode.order[0]), len(view.demand)
        allowed = np.flatnonzero(simulation.slots.mask[i])
        share = view.demand[task, :2, None] * view.inverse
        after = np.maximum(view.free[:2] * view.inverse - share, 0.0)
        above = view.use + share - (view.node_sum + share.T).T[:, :] / view.node_count[:, None]
        expected = {
            "cpu-share": share[0], "memory-share": share[1], "cpu-free-after": after[0], "memory-free-after": after[1],
            "cpu-above-mean": above[0], "memory-above-mean": above[1], "tasks-here": np.zeros(share.shape[1]),
            "hops-to-neighbours": np.zeros(share.shape[1]), "talk-within": np.zeros(share.shape[1]),
        }  # fmt: skip
        for name, values in expected.items():
            seen = simulation.slots.nodes[i][allowed, NODE[name]]
            scaled = np.clip(values[allowed] * node_scale[name], -LIMIT, LIMIT)
            np.testing.assert_allclose(seen, scaled, atol=1e-4, err_msg=name)
        told = simulation.slots.context[i]
        assert told[CONTEXT["tasks"]] == pytest.approx(min(tasks * context_scale["tasks"], LIMIT))
        assert told[CONTEXT["nodes-open"]] == pytest.approx(len(allowed) / len(view.nodes))
