"""The thesis's environment in batches against a scalar model that is written from the thesis and the instance alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ces_core.baselines.rates import importance_rates
from ces_core.learned.thesis.schema import FLOWS, LEVELS, NODES, TASKS, WIDTH
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.model.problem import Problem
from ces_core.network.cache import paths_for
from ces_core.placement.task_order import task_order
from ces_core.placement.view import ProblemView, problem_view
from ces_rl.envs.simulation import FAILURE, RUNNING, SUCCESS, SlotSize
from ces_rl.envs.thesis.rewards import AFFINITY, BASE, COMPETITION, IDEAL, IMPORTANCE, LOAD, TOPOLOGY
from ces_rl.envs.thesis.simulation import ThesisSimulation
from ces_rl.problems.draw import draw, kinds, new_random
from ces_rl.problems.pool import pack

EVEN = dict.fromkeys(REGIMES, 1.0)


def whole(problem: Problem) -> ProblemView:
    """With all nodes, also those that no task fits on."""
    return problem_view(problem, np.arange(len(problem.cluster.topology.nodes)))


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
            ways = paths_for(self.problem).between(a, b)
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
                    hops = len(paths_for(problem).between(action, self.node_of[other])[0].links)
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


def played(problems: list[Problem]) -> ThesisSimulation:
    pool = pack([whole(problem) for problem in problems])
    simulation = ThesisSimulation(len(problems), SlotSize.of(pool), bandwidth=True)
    simulation.start(pool, np.arange(len(problems)))
    return simulation


def test_a_batch_of_games_is_what_the_thesis_says_of_each() -> None:
    problems = [read_instance(random_instance(regime, seed)) for regime in REGIMES for seed in range(400, 412)]
    models = [Model(problem) for problem in problems]
    simulation = played(problems)
    slots, rng = simulation.slots, np.random.default_rng(0)
    while simulation.running.any():
        actions = np.argmax(slots.mask * rng.random(slots.mask.shape), axis=1)
        earned: dict[int, dict[int, float]] = {}
        for i in np.flatnonzero(simulation.running).tolist():
            models[i].skip()
            np.testing.assert_allclose(slots.state[i], models[i].state(), atol=1e-6)
            assert slots.mask[i].tolist() == models[i].mask()
            earned[i] = models[i].act(int(actions[i]))
        simulation.step(actions)
        for i, terms in earned.items():
            np.testing.assert_allclose(slots.terms[i], [terms[k] for k in range(6)], atol=1e-9)
    assert set(slots.status.tolist()) == {SUCCESS, FAILURE}
    for i, model in enumerate(models):
        model.skip()
        if slots.status[i] == FAILURE:
            assert not any(model.mask())
            assert not slots.outcome[i].any()
            continue
        flows = range(len(model.queue))
        placed = [model.node_of[t] for t in range(len(model.order))]
        metrics = evaluate(model.problem, placed, [model.path[f] for f in flows], [model.rate[f] for f in flows])
        use = model.cluster.node_used + np.array([problem_load(model, n) for n in range(len(model.free[0]))]).T
        mean = (use / np.where(model.cluster.node_capacity > 0, model.cluster.node_capacity, 1.0))[:2].mean()
        expected = [metrics.load_imbalance, metrics.bandwidth_satisfaction, mean]
        np.testing.assert_allclose(slots.outcome[i], expected, atol=1e-9)
        assert simulation.score[i] == pytest.approx(metrics.composite, abs=1e-9)
        assert (model.left >= -1e-9).all()


def problem_load(model: Model, node: int) -> np.ndarray[Any, Any]:
    here = [t for t, n in model.node_of.items() if n == node]
    load: np.ndarray[Any, Any] = model.problem.demand[here].sum(axis=0)
    return load


def test_rates_of_the_baseline_follow_the_rule_of_importance() -> None:
    problems = [read_instance(random_instance(regime, seed)) for regime in REGIMES for seed in range(420, 440)]
    pool = pack([whole(problem) for problem in problems])
    simulation = ThesisSimulation(len(problems), SlotSize.of(pool), bandwidth=False)
    simulation.start(pool, np.arange(len(problems)))
    slots, rng = simulation.slots, np.random.default_rng(1)
    while simulation.running.any():
        assert (slots.phase[simulation.running] == 0).all()
        simulation.step(np.argmax(slots.mask * rng.random(slots.mask.shape), axis=1))
    won = np.flatnonzero(slots.status == SUCCESS).tolist()
    assert len(won) > 20
    for i in won:
        view, progress = simulation.slot(i)
        problem = problems[i]
        placed = view.nodes[progress.node_of].tolist()
        paths = []
        for f, (a, b) in enumerate(problem.flow_ends(placed)):
            pair = int(np.searchsorted(view.nodes, a)) * len(view.nodes) + int(np.searchsorted(view.nodes, b))
            paths.append(paths_for(problem).between(a, b)[int(progress.path[f] - view.pair_first[pair])])
        np.testing.assert_allclose(progress.rates, importance_rates(problem, paths), atol=1e-9)
        metrics = evaluate(problem, placed, paths, progress.rates.tolist())
        assert simulation.score[i] == pytest.approx(metrics.composite, abs=1e-9)


@pytest.mark.parametrize("bandwidth", [True, False])
def test_no_game_reaches_into_another(bandwidth: bool) -> None:
    """Compiled code looks at no bounds: what a game answers must not depend on those beside it, or on their size."""
    pool = draw(new_random(7), kinds(EVEN, nodes=(4, 10), tasks=(2, 8)), 40)
    rng = np.random.default_rng(2)
    noise = rng.random((40, 60, max(NODES, LEVELS)))

    def play(which: list[int]) -> tuple[Any, ...]:
        simulation = ThesisSimulation(len(which), SlotSize.of(pool), bandwidth=bandwidth)
        simulation.start(pool, np.array(which))
        turn = 0
        while simulation.running.any():
            simulation.step(np.argmax(simulation.slots.mask * noise[which, turn], axis=1))
            turn += 1
        return simulation.slots.status, simulation.slots.outcome

    status, outcome = play(list(range(40)))
    assert set(status.tolist()) <= {SUCCESS, FAILURE}
    for i in range(40):
        alone, what = play([i])
        assert alone[0] == status[i]
        np.testing.assert_array_equal(what[0], outcome[i])


def test_what_the_mask_forbids_is_refused_and_larger_problems_are_too() -> None:
    pool = draw(new_random(2), kinds({"scarce": 1.0}), 20)
    simulation = ThesisSimulation(20, SlotSize.of(pool), bandwidth=True)
    with pytest.raises(ValueError, match="nothing was started"):
        simulation.step(np.zeros(20, dtype=np.int64))
    simulation.start(pool, np.arange(20))
    assert simulation.slots.state.shape == (20, WIDTH)
    actions = np.argmax(simulation.slots.mask, axis=1)
    wrong = int(np.flatnonzero((simulation.slots.status == RUNNING) & ~simulation.slots.mask[:, :NODES].all(axis=1))[0])
    actions[wrong] = int(np.argmin(simulation.slots.mask[wrong]))
    with pytest.raises(ValueError, match=f"slot {wrong}"):
        simulation.step(actions)
    with pytest.raises(ValueError, match="20 slots"):
        simulation.start(pool, np.arange(3))
    with pytest.raises(ValueError, match="there is room for"):
        simulation.start(draw(new_random(2), kinds({"thesis": 1.0}, nodes=(12, 12)), 20), np.arange(20))
    with pytest.raises(ValueError, match="the state holds"):
        ThesisSimulation(1, SlotSize(TASKS + 1, 3, NODES, 3), bandwidth=True)
