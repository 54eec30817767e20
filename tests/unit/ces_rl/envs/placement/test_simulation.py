"""The compiled simulation against the scalar model."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_instances import EVEN, instance_of

from ces_core.learned.decoder import Board
from ces_core.learned.episode import begin
from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.network.cache import paths_for
from ces_core.placement.task_order import task_order
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import FAILURE, SUCCESS, SlotSize
from ces_rl.problems.draw import draw, kinds, new_random
from ces_rl.problems.pool import Pool, view_of


def play(simulation: PlacementSimulation, pool: Pool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    simulation.start(pool, np.arange(len(pool.sizes)))
    while simulation.running.any():
        simulation.step(np.argmax(simulation.slots.mask * rng.random(simulation.slots.mask.shape), axis=1))


def test_scores_are_what_the_objective_says() -> None:
    pool = draw(new_random(1), kinds(EVEN), 120)
    simulation = PlacementSimulation(120, SlotSize.of(pool))
    play(simulation, pool, 0)
    assert set(simulation.slots.status.tolist()) == {SUCCESS, FAILURE}
    for i in np.flatnonzero(simulation.slots.status == SUCCESS).tolist():
        view, state, episode = simulation.slot(i)
        problem = read_instance(instance_of(view))
        paths = []
        for f, q in enumerate(state.path.tolist()):
            src, dst = (int(episode.placement[end[f]]) for end in (view.flow_src, view.flow_dst))
            first = int(view.pair_first[src * len(view.nodes) + dst])
            paths.append(paths_for(problem).between(src, dst)[q - first])
        metrics = evaluate(problem, episode.placement.tolist(), paths, state.rates.tolist())
        assert simulation.slots.score[i] == pytest.approx(metrics.composite, abs=1e-9)
        assert (state.free >= 0).all()
        assert (state.spare >= -1e-9).all()
    assert (simulation.slots.score[simulation.slots.status == FAILURE] == 0).all()


def test_slots_side_by_side_see_what_each_sees_alone() -> None:
    """What one has seen on the way is not known to another, nor to the next in its seat."""
    pool = draw(new_random(6), kinds(EVEN), 12)
    simulation = PlacementSimulation(12, SlotSize.of(pool))
    play(simulation, pool, 1)
    simulation.start(pool, np.arange(12))
    boards = [Board.of(view, task_order(view)) for view in (view_of(pool, i) for i in range(12))]
    for board in boards:
        begin(board.view, board.state, board.episode)
    while simulation.running.any():
        for i in np.flatnonzero(simulation.running).tolist():
            assert boards[i].look() == simulation.slots.mask[i].sum()
            np.testing.assert_array_equal(boards[i].seen.nodes[0], simulation.slots.nodes[i])
            np.testing.assert_array_equal(boards[i].seen.context[0], simulation.slots.context[i])
        actions = np.argmax(simulation.slots.mask, axis=1)
        for i in np.flatnonzero(simulation.running).tolist():
            assert boards[i].place(int(actions[i]))
        simulation.step(actions)


def test_a_slot_has_room_for_all_that_it_needs() -> None:
    """Compiled code does not look at bounds: where a seat is too small, slices come out short."""
    for tasks in (2, 5, 8):
        pool = draw(new_random(tasks), kinds(EVEN, tasks=(tasks, tasks)), 30)
        simulation = PlacementSimulation(30, SlotSize.of(pool))
        simulation.start(pool, np.arange(30))
        for i in range(30):
            view, state, episode = simulation.slot(i)
            c, t, f, r = len(view.nodes), tasks, len(view.low), len(view.residual)
            assert (state.free.shape, state.use.shape, state.spare.shape) == ((3, c), (2, c), (r,))
            assert (state.link_use.shape, state.guess.shape, state.is_affected.shape) == ((r,), (f,), (f,))
            assert (state.affected.shape, episode.trail.shape) == ((f,), (f,))
            assert (episode.carried.shape, episode.level.shape) == ((t + 1,), (1,))


def test_a_forbidden_node_is_refused() -> None:
    pool = draw(new_random(2), kinds({"scarce": 1.0}), 40)
    simulation = PlacementSimulation(40, SlotSize.of(pool))
    simulation.start(pool, np.arange(40))
    actions = np.argmax(simulation.slots.mask, axis=1)
    wrong = int(np.flatnonzero(simulation.running & ~simulation.slots.mask.all(axis=1))[0])
    actions[wrong] = int(np.argmin(simulation.slots.mask[wrong]))
    with pytest.raises(ValueError, match=f"slot {wrong}"):
        simulation.step(actions)


def test_larger_problems_than_there_is_room_for_are_refused() -> None:
    simulation = PlacementSimulation(1, SlotSize.of(draw(new_random(2), kinds(EVEN, nodes=(5, 5)), 4)))
    with pytest.raises(ValueError, match="there is room for"):
        simulation.start(draw(new_random(2), kinds(EVEN), 1), np.zeros(1, dtype=np.int64))
