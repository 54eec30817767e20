"""A stream of tasks through clusters, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.gpus.checker import Placed
from ces_core.gpus.clusters import DELAY
from ces_core.gpus.model import GpuNode, GpuTask
from ces_core.gpus.rewards import WRONG, Reading
from ces_core.gpus.rules import CLUSTER_RULES
from ces_core.gpus.scores import Policy
from ces_sim.gpus.episode import Episode, by_node, by_rule, planned
from ces_sim.gpus.scenarios import Drawn, numbered

NODES = tuple(GpuNode(f"n{i}", 4000, 4000, 1, "T4", 1000) for i in range(8))
"""Two clusters."""


def stream(*sizes: int) -> Drawn:
    tasks = tuple(GpuTask(f"t{i}", 1000, 1000, 1, size, card_memory=size) for i, size in enumerate(sizes))
    return Drawn(NODES, tasks, tasks)


def test_steps_place_wait_and_go_wrong() -> None:
    episode = Episode.of(stream(1000, 600, 600, 600, 600))
    assert episode.step(0)[Reading.THOUGHT] == -10.0  # all are equal
    assert [each.node for each in episode.placed] == [0]
    for _ in range(3):
        episode.step(0)
    assert episode.step(0) == dict.fromkeys(Reading, WRONG)  # no card of the first cluster has 600
    assert episode.over
    figures = episode.figures()
    assert (figures["deployed"], figures["judged"], figures["wrong"]) == (4, 0, 1)
    assert figures["milli_used"] == pytest.approx((2800 / 4000 + 0) / 2)
    assert figures["milli_sd"] == pytest.approx(0.35)
    assert figures["cpu_used"] == pytest.approx(4000 / 16_000 / 2)
    # of the first cluster 0.75, 0.75, 0.3 and 0.3 are left
    assert figures["idle"] == pytest.approx((0.75 + 0.75 + 0.3 + 0.3 + 4) / 2)
    assert figures["variance"] == pytest.approx(((0.25 + 0.25 + 0.7 + 0.7) / 4 / 2) ** 2)
    assert figures["gpu_variance"] == pytest.approx(0.35**2)
    assert figures["return_thought"] == pytest.approx(episode.earned[Reading.THOUGHT])


def test_waiting_is_judged() -> None:
    full = Episode.of(stream(*[1000] * 9))
    for i in range(8):
        full.step(i // 4)
    assert full.step(DELAY) == dict.fromkeys(Reading, 0.0)
    early = Episode.of(stream(500))
    assert early.step(DELAY) == dict.fromkeys(Reading, WRONG)
    assert (full.figures()["judged"], early.figures()["wrong"]) == (1, 1)


def test_what_a_checker_objects_to_is_no_figure() -> None:
    episode = Episode.of(stream(1000))
    episode.step(0)
    episode.placed.append(Placed(episode.drawn.tasks[0], 0, (0,)))
    with pytest.raises(ValueError, match="n0, card 0: 2000 milli"):
        episode.figures()


sizes = st.lists(st.sampled_from([50, 320, 470, 810, 1000]), min_size=1, max_size=30)


@settings(max_examples=25)
@given(sizes, st.sampled_from(sorted(CLUSTER_RULES)), st.integers(0, 3))
def test_every_task_is_placed_judged_or_wrong(drawn: list[int], rule: str, seed: int) -> None:
    figures = by_rule(stream(*drawn), CLUSTER_RULES[rule], seed)
    assert figures["deployed"] + figures["judged"] + figures["wrong"] == len(drawn) == len(figures["decision_s"])
    if not rule.endswith(("-blind", "-retry")) and rule != "refuse":
        assert figures["wrong"] == 0


@settings(max_examples=25)
@given(sizes, st.sampled_from(Policy))
def test_by_node_none_waits_that_fits(drawn: list[int], policy: Policy) -> None:
    figures = by_node(stream(*drawn), policy, 1)
    assert figures["deployed"] + figures["judged"] == len(drawn)


def test_equals_go_to_the_first_by_name() -> None:
    turned = Drawn(NODES[::-1], stream(500).tasks, stream(500).tasks)
    episode = Episode.of(turned)
    by_node(turned, Policy.GPU_PACKING, 1)
    episode.step_to((7, (0,)))
    assert by_node(turned, Policy.GPU_PACKING, 1)["milli_used"] == episode.figures()["milli_used"]


def test_a_plan_is_told_in_the_same_figures() -> None:
    drawn = stream(1000, 400, 400)
    figures = planned(drawn, [Placed(drawn.tasks[2], 1, (0,)), Placed(drawn.tasks[0], 0, (0,))])
    assert (figures["deployed"], figures["wrong"]) == (2, 1)
    assert figures["milli_used"] == pytest.approx(1400 / 8000)


def test_the_same_seed_decides_the_same() -> None:
    drawn = stream(*np.random.default_rng(0).choice([320, 470, 810], 20).tolist())
    first, again = (by_rule(drawn, CLUSTER_RULES["random"], 4) for _ in range(2))
    assert {**first, "decision_s": 0} == {**again, "decision_s": 0}


def test_hosts_number_models_as_whoever_looks_at_the_same_usual_tasks() -> None:
    """A rule knows the tasks and not the hosts, of which P100 comes first here and T4 there."""
    nodes = tuple(GpuNode(f"n{i}", 4000, 4000, 1, ("P100", "T4")[i % 2], 1000) for i in range(8))
    tasks = tuple(GpuTask(f"t{i}", 1, 1, 1, 500, models=frozenset({model})) for i, model in enumerate(("T4", "P100")))
    episode, models = Episode.of(Drawn(nodes, tasks, tasks)), numbered(tasks)
    assert episode.clusters.fleet.model.tolist() == [models.bit("P100"), models.bit("T4")] * 4
    assert episode.asked == tuple(map(models.asked, tasks))
