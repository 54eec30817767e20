"""What the teacher says of nodes against all plans there are, and against the exact solver."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ces_core.exact.solver import EXACT
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.view import problem_view
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.placement.teacher import Teacher
from ces_rl.envs.simulation import SUCCESS, SlotSize
from ces_rl.problems.draw import draw, kinds, new_random
from ces_rl.problems.pool import Pool, pack

CUT = 0.1


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def played(pool: Pool, nodes: tuple[int, ...], simulation: PlacementSimulation) -> float:
    """What the first problem's game comes to with its tasks on these nodes; -inf where that is not possible."""
    simulation.start(pool, np.zeros(1, dtype=np.int64))
    for node in nodes:
        if not simulation.running[0] or not simulation.slots.mask[0, node]:
            return -np.inf
        simulation.step(np.array([node]))
    return float(simulation.slots.score[0]) if simulation.slots.status[0] == SUCCESS else -np.inf


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
def test_regrets_are_those_of_the_best_of_all_plans(regime: str, threads: ThreadPoolExecutor) -> None:
    judged = 0
    for seed in range(6):
        pool = draw(new_random(seed), kinds({regime: 1.0}, (4, 4), (4, 4)), 1)
        game, scratch = PlacementSimulation(1, SlotSize.of(pool)), PlacementSimulation(1, SlotSize.of(pool))
        worth = {plan: played(pool, plan, scratch) for plan in itertools.product(range(4), repeat=4)}
        game.start(pool, np.zeros(1, dtype=np.int64))
        prefix: tuple[int, ...] = ()
        while game.running[0]:
            mask = game.slots.mask[0].copy()
            regret, best = Teacher(game, 5000, CUT, threads).judge(np.zeros(1, dtype=np.int64))
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
        pool = pack([problem_view(problem)])
        game = PlacementSimulation(1, SlotSize.of(pool))
        game.start(pool, np.zeros(1, dtype=np.int64))
        _, best = Teacher(game, 2000, CUT, threads).judge(np.zeros(1, dtype=np.int64))
        if proven is None:
            assert best[0] == -np.inf
            continue
        assert best[0] <= proven.composite + 1e-6
        short.append(proven.composite - best[0])
    assert len(short) >= 6
    assert np.mean(short) < 0.002


def test_threads_change_no_answer_and_slots_are_left_alone(threads: ThreadPoolExecutor) -> None:
    pool = draw(new_random(3), kinds({"tight": 1.0, "scarce": 1.0}, (6, 8), (3, 6)), 12)
    simulation = PlacementSimulation(12, SlotSize.of(pool))
    simulation.start(pool, np.arange(12))
    rows = np.flatnonzero(simulation.running)
    before = [part.copy() for part in simulation.slots]
    many = Teacher(simulation, 100, CUT, threads).judge(rows)
    with ThreadPoolExecutor(1) as one:
        alone = Teacher(simulation, 100, CUT, one).judge(rows)
    for first, second in zip(many, alone, strict=True):
        np.testing.assert_array_equal(first, second)
    for first, second in zip(before, simulation.slots, strict=True):
        np.testing.assert_array_equal(first, second)
