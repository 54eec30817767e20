"""Who is promoted, and who comes back: in words for one policy, and in numbers for many simulated ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ces_core.evolution.confidence import FloatArray
from ces_core.evolution.gate import BETWEEN_S, LEAST_PAIRS, PROBATION, Pairs, judged, must_return

LOOK_EVERY = 50
"""Decisions between two looks in simulations. What is ruled out stays ruled out, so no look is missed."""
Draw = Callable[[np.random.Generator], FloatArray]


def pairs_of(gains: FloatArray) -> Pairs:
    return Pairs(gains, np.zeros(len(gains), dtype=np.bool_), np.full((len(gains), 2), 2.0))


def good(count: int = 400) -> Pairs:
    return pairs_of(np.random.default_rng(1).normal(0.02, 0.01, count))


def verdict_of(pairs: Pairs, *, frozen: bool = False, promoted_s: float | None = None) -> tuple[str, ...]:
    return judged(pairs, frozen=frozen, promoted_s=promoted_s, now_s=1e9).against


def test_what_is_better_is_promoted() -> None:
    verdict = judged(good(), frozen=False, promoted_s=None, now_s=0.0)
    assert verdict.promoted
    assert verdict.interval.low > 0


def test_nothing_is_promoted_while_evolution_is_frozen() -> None:
    assert verdict_of(good(), frozen=True) == ("evolution is frozen",)
    assert must_return(pairs_of(np.full(400, -0.1)), 400, frozen=True) is None


@pytest.mark.parametrize(("ago", "promoted"), [(BETWEEN_S - 1, False), (BETWEEN_S, True)])
def test_there_is_one_promotion_a_day(ago: float, promoted: bool) -> None:
    assert (not verdict_of(good(), promoted_s=1e9 - ago)) is promoted


def test_one_refused_job_is_enough_to_be_kept_out_and_to_be_taken_back() -> None:
    pairs = good()
    pairs.refused[17] = True
    assert verdict_of(pairs) == ("it found no place for 1 jobs that the live one placed",)
    assert must_return(pairs, 10, frozen=False) == "it found no place for 1 jobs that the former one places"


def test_a_slower_one_is_kept_out() -> None:
    pairs = good()
    slow = replace(pairs, ms=pairs.ms * [1.0, 1.21])
    assert verdict_of(slow) == ("its slowest in a hundred take 1.21 times as long; 1.2 is most",)
    assert verdict_of(replace(pairs, ms=pairs.ms * [1.0, 1.2])) == ()


def test_few_decisions_are_not_enough() -> None:
    (said,) = verdict_of(good(LEAST_PAIRS - 1))
    assert said == "99 decisions are compared, and 100 are least"


def test_a_policy_that_nobody_watches_does_not_stay() -> None:
    few = good(LEAST_PAIRS - 1)
    assert must_return(few, PROBATION - 1, frozen=False) is None
    assert must_return(few, PROBATION, frozen=False) == (
        "of its first 400 decisions 99 were compared with the former one's, too few to keep it"
    )


def test_a_good_one_stays() -> None:
    assert all(must_return(good(count), count, frozen=False) is None for count in (0, 1, 100, 400, 5000))


def promoted_within(draw: Draw, seed: int) -> bool:
    """Whether a candidate is promoted at any moment: what was ruled out at any of them is ruled out at the last."""
    return not verdict_of(pairs_of(draw(np.random.default_rng(seed))))


NULLS: dict[str, Draw] = {
    "as good": lambda rng: rng.normal(0.0, 0.02, 1500),
    "alike but for one in twenty": lambda rng: rng.normal(0.0, 0.05, 1500) * (rng.random(1500) < 0.05),
    "rare losses": lambda rng: np.where(rng.random(1500) < 1 / 51, -0.05, 0.001),
    "by the coin": lambda rng: rng.choice([-0.1, 0.1], 1500),
}


@pytest.mark.parametrize("kind", NULLS)
def test_of_a_hundred_candidates_that_are_no_better_five_are_promoted_at_most(kind: str) -> None:
    assert sum(promoted_within(NULLS[kind], seed) for seed in range(100)) <= 5


POISONS: dict[str, Draw] = {
    "a hundredth worse": lambda rng: rng.normal(-0.01, 0.03, 500),
    "a tenth worse": lambda rng: rng.normal(-0.1, 0.05, 500),
    "good at first": lambda rng: np.concatenate([rng.normal(0.02, 0.02, 50), rng.normal(-0.05, 0.05, 450)]),
    "bad for one in ten": lambda rng: np.where(rng.random(500) < 0.1, -0.4, 0.001),
}


def decisions_until_return(gains: FloatArray, judged_one_in: int = 1) -> int | None:
    """How many decisions a promoted policy makes before it is taken back."""
    seen = gains[::judged_one_in]
    for count in range(LOOK_EVERY, len(gains) + 1, LOOK_EVERY):
        if must_return(pairs_of(seen[: count // judged_one_in]), count, frozen=False) is not None:
            return count
    return None


@pytest.mark.parametrize("judged_one_in", [1, 3, 20])
@pytest.mark.parametrize("kind", POISONS)
def test_a_poisoned_policy_never_stays_500_decisions(kind: str, judged_one_in: int) -> None:
    """Whether the shadow keeps up, sees one decision in three, or hardly any."""
    for seed in range(100):
        count = decisions_until_return(POISONS[kind](np.random.default_rng(seed)), judged_one_in)
        assert count is not None
        assert count < 500


def test_a_promoted_policy_that_is_better_mostly_stays() -> None:
    """Of a hundred that gain 0.005 on average, with a spread of 0.02."""
    stayed = [
        decisions_until_return(np.random.default_rng(seed).normal(0.005, 0.02, 2000)) is None for seed in range(100)
    ]
    assert sum(stayed) >= 99
