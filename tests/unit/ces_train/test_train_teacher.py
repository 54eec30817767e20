"""What the teacher says of nodes against all plans there are, and against the exact solver."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.kernels.compact import compact
from ces_core.solvers.exact import EXACT
from ces_train.drawing import draw, kinds, new_random
from ces_train.games import WON, Games, Most
from ces_train.pool import Pool, pack
from ces_train.teacher import judge

CUT = 0.1


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def played(pool: Pool, nodes: tuple[int, ...], games: Games) -> float:
    """What the first problem's game comes to with its tasks on these nodes; -inf where that is not possible."""
    games.start(pool, np.zeros(1, dtype=np.int64))
    for node in nodes:
        if not games.playing[0] or not games.seats.mask[0, node]:
            return -np.inf
        games.step(np.array([node]))
    return float(games.seats.worth[0]) if games.seats.status[0] == WON else -np.inf


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
def test_regrets_are_those_of_the_best_of_all_plans(regime: str, threads: ThreadPoolExecutor) -> None:
    judged = 0
    for seed in range(6):
        pool = draw(new_random(seed), kinds({regime: 1.0}, (4, 4), (4, 4)), 1)
        game, scratch = Games(1, Most.of(pool)), Games(1, Most.of(pool))
        worth = {plan: played(pool, plan, scratch) for plan in itertools.product(range(4), repeat=4)}
        game.start(pool, np.zeros(1, dtype=np.int64))
        prefix: tuple[int, ...] = ()
        while game.playing[0]:
            mask = game.seats.mask[0].copy()
            regret, best = judge(game, np.zeros(1, dtype=np.int64), 5000, CUT, threads)
            ends = [max(w for plan, w in worth.items() if plan[: len(prefix) + 1] == (*prefix, n)) for n in range(4)]
            assert best[0] == pytest.approx(max(ends), abs=1e-9) or best[0] == max(ends)
            if np.isfinite(best[0]):
                expected = [min(max(ends) - end, CUT) if free else CUT for end, free in zip(ends, mask, strict=True)]
                np.testing.assert_allclose(regret[0], expected, atol=1e-6)
                judged += 1
            node = int(np.argmax(np.where(mask, -regret[0], -np.inf)))
            prefix = (*prefix, node)
            game.step(np.array([node]))
    assert judged >= 12


def test_the_best_first_node_is_worth_what_the_exact_solver_finds(threads: ThreadPoolExecutor) -> None:
    """But for paths, which a game chooses one by one."""
    short = []
    for seed in range(8):
        problem = read_instance(random_instance("tight", seed, nodes=6, tasks=4))
        proven = EXACT.solve(problem).metrics
        pool = pack([compact(problem)])
        game = Games(1, Most.of(pool))
        game.start(pool, np.zeros(1, dtype=np.int64))
        _, best = judge(game, np.zeros(1, dtype=np.int64), 2000, CUT, threads)
        if proven is None:
            assert best[0] == -np.inf
            continue
        assert best[0] <= proven.composite + 1e-6
        short.append(proven.composite - best[0])
    assert len(short) >= 6
    assert np.mean(short) < 0.002


def test_threads_change_no_answer_and_games_are_left_alone(threads: ThreadPoolExecutor) -> None:
    pool = draw(new_random(3), kinds({"tight": 1.0, "scarce": 1.0}, (6, 8), (3, 6)), 12)
    games = Games(12, Most.of(pool))
    games.start(pool, np.arange(12))
    rows = np.flatnonzero(games.playing)
    before = [part.copy() for part in games.seats]
    many = judge(games, rows, 100, CUT, threads)
    with ThreadPoolExecutor(1) as one:
        alone = judge(games, rows, 100, CUT, one)
    for first, second in zip(many, alone, strict=True):
        np.testing.assert_array_equal(first, second)
    for first, second in zip(before, games.seats, strict=True):
        np.testing.assert_array_equal(first, second)
