"""Every policy's score worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gpu_tasks import asked

from ces_core.gpus.fragmentation import typical
from ces_core.gpus.model import Asked, Fleet, GpuNode, Models
from ces_core.gpus.scores import Policy, rate, share_of

USUAL = typical([asked(4000, 1, 500)] * 3 + [asked(8000, 1, 1000)])
SHARE, WHOLE, OTHER = asked(12_800, 1, 400), asked(12_800), asked(12_800, 0, 0)


def fleet(cpu: int, *left: int, kinds: tuple[int, ...] = ()) -> Fleet:
    """One node with that much free; ``kinds``: columns of what runs there."""
    found = Models().fleet([GpuNode("n", cpu, 1024, len(left), "T4", 16_000)])
    found.milli[0] = left
    for kind in kinds:
        found.kinds[0, kind] += 1
    return found


def score(policy: Policy, on: Fleet, task: Asked) -> int:
    scores = np.full(1, -2)
    rate(policy, on, USUAL, task, np.array([0]), scores)
    return int(scores[0])


def test_the_dot_product_of_what_is_free_and_what_is_asked() -> None:
    # CPU 0.5 x 0.1, GPU 0.25 x 0.05, half the sum is 0.03125
    assert score(Policy.DOT_PROD, fleet(64_000, 1000, 1000), SHARE) == 96
    assert score(Policy.DOT_PROD, fleet(64_000, 1000, 1000), OTHER) == 97  # 1 - 0.025, cut


def test_best_fit_is_what_would_be_left() -> None:
    # CPU 0.4 of the largest node, GPU 1000 of 8000: 1 - 0.2 - 0.0625
    assert score(Policy.BEST_FIT, fleet(64_000, 1000, 1000), WHOLE) == 73


@pytest.mark.parametrize(
    ("left", "task", "found"),
    [
        ((1000, 1000), SHARE, 31),  # an empty node: a third of 100, less its cards
        ((1000,) * 8, WHOLE, 25),
        ((1000, 400), WHOLE, 49),  # a free card of a node in use
        ((1000, 500), asked(1, 1, 600), 49),
        ((1000, 400), SHARE, 96),  # a card in use: 100 less a tenth of its 40 %
        ((1000, 459), SHARE, 96),
        ((810, 1000), SHARE, 92),
        ((1000, 400), OTHER, 0),
    ],
)
def test_packing_prefers_cards_in_use(left: tuple[int, ...], task: Asked, found: int) -> None:
    assert score(Policy.GPU_PACKING, fleet(64_000, *left), task) == found


@pytest.mark.parametrize(
    ("kinds", "task", "found"),
    [
        ((0,), SHARE, 75 + 20),  # 25 x 6600 / 8000 is 20.6
        ((0, 0), SHARE, 75 + 20),
        ((0, 1), SHARE, 50 + 20),
        ((), SHARE, 25 + 20),
        ((1,), SHARE, 20),
        ((1,), WHOLE, 75 + 20),
        ((0, 1), OTHER, 0),
    ],
)
def test_clustering_prefers_the_same_kind(kinds: tuple[int, ...], task: Asked, found: int) -> None:
    assert score(Policy.GPU_CLUSTERING, fleet(64_000, 1000, 400, kinds=kinds), task) == found


def test_fgd_is_by_the_fragments_that_disappear() -> None:
    on, small = fleet(20_000, 1000, 400), asked(1000, 1, 400)
    # 1600 useless before; on the first card 2200 after, on the second none: 0.4 cards on average disappear
    assert score(Policy.FGD, on, small) == int(100 / (1 + math.exp(-0.4))) == 59
    assert share_of(Policy.FGD, on, USUAL, small, 0) == 1
    # a whole card: 400 of the rest are useless to three of four, and to the fourth: 1600 before and after
    assert score(Policy.FGD, on, asked(1000)) == 50
    # without GPU, but too little CPU is left for anybody: 1600 before, 4 x 1400 after
    assert score(Policy.FGD, on, asked(17_000, 0, 0)) == int(100 / (1 + math.exp(1.0))) == 26


def test_of_equal_cards_the_first_and_of_unequal_ones_the_tightest() -> None:
    assert share_of(Policy.FGD, fleet(64_000, 1000, 1000), USUAL, SHARE, 0) == 0
    for policy in (Policy.DOT_PROD, Policy.GPU_CLUSTERING, Policy.GPU_PACKING, Policy.BEST_FIT):
        assert share_of(policy, fleet(64_000, 1000, 500, 400, 400, 300), USUAL, SHARE, 0) == 2


@pytest.mark.parametrize("policy", Policy)
def test_what_does_not_fit_has_no_score(policy: Policy) -> None:
    on = fleet(64_000, 1000, 300)
    assert score(policy, on, SHARE) >= 0
    more = (asked(64_001), asked(1, 2), asked(1, 0, 0, memory=1025), asked(1, 1, 200, card_memory=16_001))
    for task in (*more, asked(1, 1, 200, models=4)):
        assert score(policy, on, task) == -1
