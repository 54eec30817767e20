"""The thesis's environment in batches against a scalar model that is written from the thesis and the instance alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ces_core.generate import REGIMES, random_instance
from ces_core.instance import read_instance
from ces_core.kernels.compact import Compact, compact
from ces_core.kernels.order import task_order
from ces_core.objective import evaluate
from ces_core.policy.thesis_schema import FLOWS, LEVELS, NODES, TASKS, WIDTH
from ces_core.problem import Problem
from ces_core.solvers.baselines.steps import importance_rates
from ces_train.drawing import draw, kinds, new_random
from ces_train.games import LOST, PLAYING, WON, Most
from ces_train.pool import pack
from ces_train.thesis_games import ThesisGames
from ces_train.thesis_rewards import AFFINITY, BASE, COMPETITION, IDEAL, IMPORTANCE, LOAD, TOPOLOGY

EVEN = dict.fromkeys(REGIMES, 1.0)


def whole(problem: Problem) -> Compact:
    """With all nodes, also those that no task fits on."""
    return compact(problem, np.arange(len(problem.cluster.topology.nodes)))


class Model:
    """One game, as the thesis's text has it."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.cluster = problem, problem.cluster
        self.order = task_order(whole(problem)).tolist()
        low = problem.flow_min.tolist()
        self.queue = sorted(range(len(low)), key=lambda f: (-low[f], f))
        self.node_of: dict[int, int] = {}
        self.path: dict[int, Any] = {}
        self.rate: dict[int, float] = {}
        self.free = self.cluster.node_free.copy()
        self.left = self.cluster.bandwidth_free.copy()

    def ends(self, f: int) -> tuple[int, int]:
        return self.node_of[int(self.problem.flow_src[f])], self.node_of[int(self.problem.flow_dst[f])]

    def skip(self) -> None:
        """Flows within a node are no decision."""
        while len(self.node_of) == len(self.order) and len(self.rate) < len(self.queue):
            f = self.queue[len(self.rate)]
            a, b = self.ends(f)
            ways = self.problem.routes.between(a, b)
            widths = [min((self.left[r] for r, _ in way.loads), default=math.inf) for way in ways]
            self.path[f] = ways[int(np.argmax(widths))]
            if a != b:
                return
            self.rate[f] = float(self.problem.flow_max[f])

    def levels(self, f: int) -> list[float]:
        low, high = float(self.problem.flow_min[f]), float(self.problem.flow_max[f])
        return [low + level / (LEVELS - 1) * (high - low) for level in range(LEVELS)]

    def mask(self) -> list[bool]:
        open_now = [False] * max(NODES, LEVELS)
        if len(self.node_of) < len(self.order):
            demand = self.problem.demand[self.order[len(self.node_of)]]
            for n in range(self.free.shape[1]):
                open_now[n] = bool((demand <= self.free[:, n] + 1e-9).all())
        else:
            f = self.queue[len(self.rate)]
            for level, rate in enumerate(self.levels(f)):
                open_now[level] = all(rate <= self.left[r] + 1e-9 for r, _ in self.path[f].loads)
        return open_now

    def state(self) -> np.ndarray[Any, Any]:
        topology, problem = self.cluster.topology, self.problem
        most = [self.cluster.node_capacity[0].max(), self.cluster.node_capacity[1].max()]
        widest = self.cluster.link_capacity.max()
        nodes, tasks = np.zeros((NODES, 3)), np.zeros((TASKS, 3))
        for n in range(len(topology.nodes)):
            near = (topology.link_src == n) | (topology.link_dst == n)
            nodes[n] = [*(self.free[:2, n] / most), self.left[: len(near)][near].mean() / widest]
        for i, t in enumerate(self.order):
            out = np.flatnonzero(problem.flow_src == t)
            talk = ((problem.flow_min + problem.flow_max) / 2)[out].mean() if len(out) else 0.0
            tasks[i] = [*(problem.demand[t, :2] / most), talk / widest]
        mapped, count = len(self.node_of), len(self.order)
        phase = float(mapped == count)
        index = len(self.rate) / FLOWS if phase else mapped / TASKS
        progress = [phase, index, count / TASKS, len(self.queue) / FLOWS, mapped / count]
        return np.concatenate([nodes.ravel(), tasks.ravel(), progress])

    def act(self, action: int) -> dict[int, float]:
        """Takes an action, and says what it earns."""
        problem = self.problem
        if len(self.node_of) < len(self.order):
            t = self.order[len(self.node_of)]
            capacity = self.cluster.node_capacity[:2, action]
            before = 1.0 - self.free[:2, action] / capacity
            after = before + problem.demand[t, :2] / capacity
            nearness = np.maximum(1.0 - np.abs(after - IDEAL) / IDEAL, 0.0)
            asked, left = problem.demand[t, :2] / capacity, self.free[:2, action] / capacity
            near = heard = 0.0
            for f in range(len(self.queue)):
                pair = [int(problem.flow_src[f]), int(problem.flow_dst[f])]
                if t in pair and (other := pair[1 - pair.index(t)]) in self.node_of:
                    hops = len(problem.routes.between(action, self.node_of[other])[0].links)
                    near += problem.flow_max[f] / (1 + hops)
                    heard += problem.flow_max[f]
            self.node_of[t] = action
            self.free[:, action] -= problem.demand[t]
            return {
                BASE: 0.5 + 0.25 * nearness.sum(),
                LOAD: 1.0 - before.mean(),
                AFFINITY: asked @ left / np.linalg.norm(asked) / np.linalg.norm(left),
                TOPOLOGY: near / heard if heard else 0.0,
                IMPORTANCE: 0.0,
                COMPETITION: 0.0,
            }
        f = self.queue[len(self.rate)]
        self.rate[f] = self.levels(f)[action]
        for r, _ in self.path[f].loads:
            self.left[r] -= self.rate[f]
        share = action / (LEVELS - 1)
        links = [self.left[r] / self.cluster.bandwidth_capacity[r] for r, _ in self.path[f].loads]
        part = problem.flow_max[f] / problem.flow_max.sum()
        return {BASE: share, LOAD: 0, AFFINITY: 0, TOPOLOGY: 0, IMPORTANCE: share * part, COMPETITION: min(links)}


def played(problems: list[Problem]) -> ThesisGames:
    pool = pack([whole(problem) for problem in problems])
    games = ThesisGames(len(problems), Most.of(pool), bandwidth=True)
    games.start(pool, np.arange(len(problems)))
    return games


def test_a_batch_of_games_is_what_the_thesis_says_of_each() -> None:
    problems = [read_instance(random_instance(regime, seed)) for regime in REGIMES for seed in range(400, 412)]
    models = [Model(problem) for problem in problems]
    games = played(problems)
    seats, rng = games.seats, np.random.default_rng(0)
    while games.playing.any():
        actions = np.argmax(seats.mask * rng.random(seats.mask.shape), axis=1)
        earned: dict[int, dict[int, float]] = {}
        for i in np.flatnonzero(games.playing).tolist():
            models[i].skip()
            np.testing.assert_allclose(seats.state[i], models[i].state(), atol=1e-6)
            assert seats.mask[i].tolist() == models[i].mask()
            earned[i] = models[i].act(int(actions[i]))
        games.step(actions)
        for i, terms in earned.items():
            np.testing.assert_allclose(seats.terms[i], [terms[k] for k in range(6)], atol=1e-9)
    assert set(seats.status.tolist()) == {WON, LOST}
    for i, model in enumerate(models):
        model.skip()
        if seats.status[i] == LOST:
            assert not any(model.mask())
            assert not seats.outcome[i].any()
            continue
        flows = range(len(model.queue))
        placed = [model.node_of[t] for t in range(len(model.order))]
        metrics = evaluate(model.problem, placed, [model.path[f] for f in flows], [model.rate[f] for f in flows])
        use = model.cluster.node_used + np.array([problem_load(model, n) for n in range(len(model.free[0]))]).T
        mean = (use / np.where(model.cluster.node_capacity > 0, model.cluster.node_capacity, 1.0))[:2].mean()
        expected = [metrics.load_imbalance, metrics.bandwidth_satisfaction, mean]
        np.testing.assert_allclose(seats.outcome[i], expected, atol=1e-9)
        assert games.worth[i] == pytest.approx(metrics.composite, abs=1e-9)
        assert (model.left >= -1e-9).all()


def problem_load(model: Model, node: int) -> np.ndarray[Any, Any]:
    here = [t for t, n in model.node_of.items() if n == node]
    load: np.ndarray[Any, Any] = model.problem.demand[here].sum(axis=0)
    return load


def test_rates_of_the_baseline_follow_the_rule_of_importance() -> None:
    problems = [read_instance(random_instance(regime, seed)) for regime in REGIMES for seed in range(420, 440)]
    pool = pack([whole(problem) for problem in problems])
    games = ThesisGames(len(problems), Most.of(pool), bandwidth=False)
    games.start(pool, np.arange(len(problems)))
    seats, rng = games.seats, np.random.default_rng(1)
    while games.playing.any():
        assert (seats.phase[games.playing] == 0).all()
        games.step(np.argmax(seats.mask * rng.random(seats.mask.shape), axis=1))
    won = np.flatnonzero(seats.status == WON).tolist()
    assert len(won) > 20
    for i in won:
        view, progress = games.game(i)
        problem = problems[i]
        placed = view.nodes[progress.node_of].tolist()
        paths = []
        for f, (a, b) in enumerate(problem.flow_ends(placed)):
            pair = int(np.searchsorted(view.nodes, a)) * len(view.nodes) + int(np.searchsorted(view.nodes, b))
            paths.append(problem.routes.between(a, b)[int(progress.path[f] - view.pair_first[pair])])
        np.testing.assert_allclose(progress.rates, importance_rates(problem, paths), atol=1e-9)
        metrics = evaluate(problem, placed, paths, progress.rates.tolist())
        assert games.worth[i] == pytest.approx(metrics.composite, abs=1e-9)


@pytest.mark.parametrize("bandwidth", [True, False])
def test_no_game_reaches_into_another(bandwidth: bool) -> None:
    """Compiled code looks at no bounds: what a game answers must not depend on those beside it, or on their size."""
    pool = draw(new_random(7), kinds(EVEN, nodes=(4, 10), tasks=(2, 8)), 40)
    rng = np.random.default_rng(2)
    noise = rng.random((40, 60, max(NODES, LEVELS)))

    def play(which: list[int]) -> tuple[Any, ...]:
        games = ThesisGames(len(which), Most.of(pool), bandwidth=bandwidth)
        games.start(pool, np.array(which))
        turn = 0
        while games.playing.any():
            games.step(np.argmax(games.seats.mask * noise[which, turn], axis=1))
            turn += 1
        return games.seats.status, games.seats.outcome

    status, outcome = play(list(range(40)))
    assert set(status.tolist()) <= {WON, LOST}
    for i in range(40):
        alone, what = play([i])
        assert alone[0] == status[i]
        np.testing.assert_array_equal(what[0], outcome[i])


def test_what_the_mask_forbids_is_refused_and_larger_problems_are_too() -> None:
    pool = draw(new_random(2), kinds({"scarce": 1.0}), 20)
    games = ThesisGames(20, Most.of(pool), bandwidth=True)
    with pytest.raises(ValueError, match="no game was started"):
        games.step(np.zeros(20, dtype=np.int64))
    games.start(pool, np.arange(20))
    assert games.seats.state.shape == (20, WIDTH)
    actions = np.argmax(games.seats.mask, axis=1)
    wrong = int(np.flatnonzero((games.seats.status == PLAYING) & ~games.seats.mask[:, :NODES].all(axis=1))[0])
    actions[wrong] = int(np.argmin(games.seats.mask[wrong]))
    with pytest.raises(ValueError, match=f"game {wrong}"):
        games.step(actions)
    with pytest.raises(ValueError, match="20 games"):
        games.start(pool, np.arange(3))
    with pytest.raises(ValueError, match="there is room for"):
        games.start(draw(new_random(2), kinds({"thesis": 1.0}, nodes=(12, 12)), 20), np.arange(20))
    with pytest.raises(ValueError, match="the state holds"):
        ThesisGames(1, Most(TASKS + 1, 3, NODES, 3), bandwidth=True)
