"""The batched environment against the scalar model, and its generator against that of the benchmarks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ces_core.generate import REGIMES, random_instance
from ces_core.instance import read_instance
from ces_core.kernels.compact import Compact, compact
from ces_core.kernels.order import task_order
from ces_core.objective import evaluate
from ces_core.policy.decode import Board
from ces_train.drawing import draw, kinds, new_random
from ces_train.games import LOST, WON, Games, Most
from ces_train.pool import Pool, pack, view_of

EVEN = dict.fromkeys(REGIMES, 1.0)


def instance_of(view: Compact) -> dict[str, Any]:
    """The instance that a drawn problem comes from."""
    count = len(view.nodes)
    nodes = [
        {"name": f"n{n}"}
        | {key: 1.0 / view.inverse[k, n] for k, key in enumerate(("cpu", "memory"))}
        | {f"{key}_used": view.use[k, n] / view.inverse[k, n] for k, key in enumerate(("cpu", "memory"))}
        for n in range(count)
    ]
    links = []
    for pair in range(count * count):
        q = view.pair_first[pair]
        if view.path_first[q + 1] - view.path_first[q] == 1:
            speed = 1.0 / view.link_inverse[view.path_resource[view.path_first[q]]]
            links.append({"src": f"n{pair // count}", "dst": f"n{pair % count}", "bandwidth": speed})
    tasks = [{"name": f"t{t}", "cpu": row[0], "memory": row[1]} for t, row in enumerate(view.demand)]
    flows = [
        {"src": f"t{src}", "dst": f"t{dst}", "min": low, "max": high}
        for src, dst, low, high in zip(view.flow_src, view.flow_dst, view.low, view.high, strict=True)
    ]
    return {"nodes": nodes, "links": links, "job": {"tasks": tasks, "flows": flows}}


def play(games: Games, pool: Pool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    games.start(pool, np.arange(len(pool.sizes)))
    while games.playing.any():
        games.step(np.argmax(games.seats.mask * rng.random(games.seats.mask.shape), axis=1))


def test_drawn_problems_are_what_the_model_makes_of_their_instances() -> None:
    pool = draw(new_random(3), kinds(EVEN, nodes=(4, 12)), 60)
    for i in range(60):
        drawn = view_of(pool, i)
        made = compact(read_instance(instance_of(drawn)))
        for name, value in drawn._asdict().items():
            np.testing.assert_allclose(value, getattr(made, name), rtol=1e-9, atol=1e-9, err_msg=name)


def test_packing_keeps_every_number() -> None:
    views = [compact(read_instance(random_instance("tight", seed, nodes=5 + seed))) for seed in range(8)]
    pool = pack(views)
    for i, view in enumerate(views):
        for name, value in view_of(pool, i)._asdict().items():
            np.testing.assert_array_equal(value, getattr(view, name), err_msg=name)


def figures(views: list[Compact]) -> dict[str, list[float]]:
    """What is compared between two sets of problems."""
    return {
        "tasks": [float(len(view.demand)) for view in views],
        "flows": [float(len(view.low)) for view in views],
        "links": [view.link_count for view in views],
        "cpu": [float(x) for view in views for x in view.demand[:, 0]],
        "free memory": [float(x) for view in views for x in view.free[1]],
        "used": [float(x) for view in views for x in view.use[0]],
        "capacity": [float(x) for view in views for x in 1.0 / view.inverse[1]],
        "speed": [float(x) for view in views for x in view.room],
        "minimum": [float(x) for view in views for x in view.low],
        "maximum": [float(x) for view in views for x in view.high],
        "hops": [float(n) for view in views for n in np.diff(view.path_first)],
    }


@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_draws_follow_the_distributions_of_the_benchmarks(regime: str) -> None:
    pool = draw(new_random(5), kinds({regime: 1.0}), 400)
    drawn = figures([view_of(pool, i) for i in range(400)])
    known = figures([compact(read_instance(random_instance(regime, seed))) for seed in range(400)])
    for name, values in drawn.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # p-values of ties are approximate
            same = stats.ks_2samp(values, known[name])
        assert same.pvalue > 1e-3, (name, np.mean(values), np.mean(known[name]))


def test_the_same_seed_draws_the_same() -> None:
    first, again = (draw(new_random(9), kinds(EVEN), 20) for _ in range(2))
    np.testing.assert_array_equal(first.floats, again.floats)
    other = draw(new_random(10), kinds(EVEN), 20)
    assert first.floats.shape != other.floats.shape or (first.floats != other.floats).any()


def test_games_are_worth_what_the_objective_says() -> None:
    pool = draw(new_random(1), kinds(EVEN), 120)
    games = Games(120, Most.of(pool))
    play(games, pool, 0)
    assert set(games.seats.status.tolist()) == {WON, LOST}
    for i in np.flatnonzero(games.seats.status == WON).tolist():
        view, state, episode = games.game(i)
        problem = read_instance(instance_of(view))
        paths = []
        for f, q in enumerate(state.path.tolist()):
            src, dst = (int(episode.placement[end[f]]) for end in (view.flow_src, view.flow_dst))
            first = int(view.pair_first[src * len(view.nodes) + dst])
            paths.append(problem.routes.between(src, dst)[q - first])
        metrics = evaluate(problem, episode.placement.tolist(), paths, state.rates.tolist())
        assert games.seats.worth[i] == pytest.approx(metrics.composite, abs=1e-9)
        assert (state.free >= 0).all()
        assert (state.spare >= -1e-9).all()
    assert (games.seats.worth[games.seats.status == LOST] == 0).all()


def test_games_side_by_side_see_what_each_sees_alone() -> None:
    """What one has seen on the way is not known to another, nor to the next in its seat."""
    pool = draw(new_random(6), kinds(EVEN), 12)
    games = Games(12, Most.of(pool))
    play(games, pool, 1)
    games.start(pool, np.arange(12))
    boards = [Board.of(view, task_order(view)) for view in (view_of(pool, i) for i in range(12))]
    for board in boards:
        board.begin()
    while games.playing.any():
        for i in np.flatnonzero(games.playing).tolist():
            assert boards[i].look() == games.seats.mask[i].sum()
            np.testing.assert_array_equal(boards[i].nodes[0], games.seats.nodes[i])
            np.testing.assert_array_equal(boards[i].context[0], games.seats.context[i])
        actions = np.argmax(games.seats.mask, axis=1)
        for i in np.flatnonzero(games.playing).tolist():
            assert boards[i].place(int(actions[i]))
        games.step(actions)


def test_a_game_has_room_for_all_that_it_needs() -> None:
    """Compiled code does not look at bounds: where a seat is too small, slices come out short."""
    for tasks in (2, 5, 8):
        pool = draw(new_random(tasks), kinds(EVEN, tasks=(tasks, tasks)), 30)
        games = Games(30, Most.of(pool))
        games.start(pool, np.arange(30))
        for i in range(30):
            view, state, episode = games.game(i)
            c, t, f, r = len(view.nodes), tasks, len(view.low), len(view.room)
            assert (state.free.shape, state.use.shape, state.spare.shape) == ((3, c), (2, c), (r,))
            assert (state.link_use.shape, state.guess.shape, state.is_affected.shape) == ((r,), (f,), (f,))
            assert (state.affected.shape, episode.trail.shape) == ((f,), (f,))
            assert (episode.carried.shape, episode.level.shape) == ((t + 1,), (1,))


def test_a_forbidden_node_is_refused() -> None:
    pool = draw(new_random(2), kinds({"scarce": 1.0}), 40)
    games = Games(40, Most.of(pool))
    games.start(pool, np.arange(40))
    actions = np.argmax(games.seats.mask, axis=1)
    wrong = int(np.flatnonzero(games.playing & ~games.seats.mask.all(axis=1))[0])
    actions[wrong] = int(np.argmin(games.seats.mask[wrong]))
    with pytest.raises(ValueError, match=f"game {wrong}"):
        games.step(actions)


def test_larger_problems_than_there_is_room_for_are_refused() -> None:
    games = Games(1, Most.of(draw(new_random(2), kinds(EVEN, nodes=(5, 5)), 4)))
    with pytest.raises(ValueError, match="there is room for"):
        games.start(draw(new_random(2), kinds(EVEN), 1), np.zeros(1, dtype=np.int64))


@pytest.mark.needs("torch")
def test_gymnasium_accepts_the_adapter() -> None:
    from gymnasium.utils.env_checker import check_env

    from ces_train.single import PlacementEnv

    env = PlacementEnv()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)
    seen, _ = env.reset(seed=4)
    reward, done = 0.0, False
    while not done:
        assert reward == 0.0
        seen, reward, done, _, _ = env.step(np.int64(np.flatnonzero(seen["mask"])[0]))
    assert 0.0 < reward < 1.0
    seen, _ = env.reset(seed=4)
    assert not seen["mask"].all()
    forbidden = np.int64(np.argmin(seen["mask"]))
    assert env.step(forbidden)[1:3] == (0.0, True)
