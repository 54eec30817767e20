"""Which node and which cards, and that nothing has more on it than it has, whatever comes."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_tasks import all_asked, asked, gpu_nodes, gpu_tasks
from hypothesis import given
from hypothesis import strategies as st

from ces_core.gpus.checker import Placed, faults
from ces_core.gpus.choice import Chooser
from ces_core.gpus.fragmentation import typical
from ces_core.gpus.model import CARD, GpuNode, GpuTask, Models
from ces_core.gpus.scores import Policy, rate

policies = st.sampled_from(Policy)


def chooser(policy: Policy, nodes: list[GpuNode], tasks: list[GpuTask], seed: int = 0) -> tuple[Chooser, Models]:
    models = Models()
    fleet = models.fleet(nodes)
    return Chooser(policy, fleet, typical(all_asked(models, tasks)), np.random.default_rng(seed)), models


@given(policies, gpu_nodes(), gpu_tasks())
def test_nothing_is_full_beyond_its_size(policy: Policy, nodes: list[GpuNode], tasks: list[GpuTask]) -> None:
    choice, models = chooser(policy, nodes, tasks)
    placed = []
    for task in tasks:
        want = models.asked(task)
        if (found := choice.choose(want)) is not None:
            choice.place(*found, want)
            placed.append(Placed(task, *found))
        elif policy is not Policy.RANDOM:
            assert (choice.scores(want) == -1).all()
    assert faults(nodes, placed) == []
    assert min(part.min() for part in choice.fleet) >= 0
    assert choice.fleet.milli.max(initial=0) <= CARD


@given(policies, gpu_nodes(), gpu_tasks())
def test_kept_scores_are_those_of_now(policy: Policy, nodes: list[GpuNode], tasks: list[GpuTask]) -> None:
    choice, models = chooser(policy, nodes, tasks)
    usual, fresh = typical(all_asked(models, tasks)), np.empty(len(nodes), np.int64)
    for task in tasks:
        want = models.asked(task)
        found = choice.choose(want)
        rate(policy, choice.fleet, usual, want, np.arange(len(nodes)), fresh)
        assert choice.scores(want).tolist() == fresh.tolist()
        if found is not None:
            choice.place(*found, want)


@pytest.mark.parametrize("policy", [policy for policy in Policy if policy is not Policy.RANDOM])
def test_of_equals_the_first(policy: Policy) -> None:
    nodes = [GpuNode(name, 8000, 1024, 2) for name in "abc"]
    choice, _ = chooser(policy, nodes, [GpuTask("t", 1000, 1, 1, 500)])
    assert choice.choose(asked(1000, 1, 500)) == (0, (0,))
    assert choice.choose(asked(1000, 2)) == (0, (0, 1))
    assert choice.choose(asked(1000, 0, 0)) == (0, ())
    assert choice.choose(asked(8001)) is None


def test_random_goes_everywhere_where_it_fits() -> None:
    nodes = [GpuNode(name, 8000, 1024, 2) for name in "abc"]
    choice, _ = chooser(Policy.RANDOM, nodes, [GpuTask("t", 1000, 1, 1, 500)])
    choice.place(1, (0, 1), asked(0, 2))
    found = {choice.choose(asked(1000, 1, 500)) for _ in range(100)}
    assert found == {(node, (card,)) for node in (0, 2) for card in (0, 1)}
