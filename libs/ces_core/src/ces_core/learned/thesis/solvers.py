"""The thesis's own learned schedulers: ``ces-ppo-thesis`` (4.2: a node for each task, then a bandwidth level for each
flow) and its baseline ``ppo-balance`` (4.3.1: the same mapping, bandwidth by importance).

Both always take the best unmasked action, never backtrack, and fail if the mask leaves none, as in the thesis. Their
network has a fixed number of inputs, so larger clusters and jobs are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from ces_core.bandwidth.composite import Allocation
from ces_core.baselines.baseline import Baseline, Placer
from ces_core.baselines.rates import Served, Shortfall, Step, by_importance
from ces_core.baselines.sequential import Placement, View, place
from ces_core.learned.thesis.policy import (
    BANDWIDTH,
    MAPPING,
    SHIPPED,
    SHIPPED_BALANCE,
    SIZES,
    ThesisPolicy,
    load_thesis_policy,
)
from ces_core.learned.thesis.schema import ACTIONS, NODES, TASKS, WIDTH
from ces_core.learned.thesis.state import GIVEN, OVER, PATH, Progress, act, begin, look, new_progress, node_at
from ces_core.model.plan import Advice, Result
from ces_core.model.problem import FloatArray, Problem
from ces_core.model.reason import Reason
from ces_core.placement.candidates import candidates
from ces_core.placement.view import ProblemView, path_of, problem_view
from ces_core.search.diagnosis import SearchTrace, obstacle
from ces_core.solver import refuse_goals

TOO_LARGE = Reason("beyond-policy", proven=False, where=f"{NODES} nodes and {TASKS} tasks")


class Table:
    """One decision in progress: what is decided so far, and the policy's best next action."""

    def __init__(self, problem: Problem, policy: ThesisPolicy) -> None:
        self.view: ProblemView = problem_view(problem, candidates(problem))
        self.progress: Progress = new_progress(self.view)
        self._policy = policy
        self._state = np.zeros((1, WIDTH), dtype=np.float32)
        self._mask = np.zeros(ACTIONS, dtype=np.bool_)
        begin(self.view, self.progress)

    def look(self) -> int:
        """See :func:`ces_core.learned.thesis.state.look`."""
        return look(self.view, self.progress, self._state[0], self._mask)

    def best(self, head: str) -> tuple[int, float]:
        """The best action that the latest look left open, and its probability among those."""
        scores = np.where(self._mask[: SIZES[head]], self._policy.scores(head, self._state)[0], -np.inf)
        best = int(np.argmax(scores))
        return best, 1.0 / float(np.exp(scores - scores[best]).sum())

    def act(self, action: int) -> None:
        act(self.view, self.progress, action)


def placer(policy: ThesisPolicy, odds: dict[str, float]) -> Placer:
    """The mapping phase: one task after the other on the best node that holds it. ``odds`` receives each choice's
    probability, by task name."""

    def by_policy(problem: Problem, rng: np.random.Generator) -> Placement:
        table = Table(problem, policy)

        def score(view: View) -> FloatArray:
            table.look()
            node, odds[problem.tasks[view.task].name] = table.best(MAPPING)
            table.act(node)
            chosen = np.zeros(len(view.chosen))
            chosen[table.view.nodes[node]] = 1.0
            return chosen

        return place(problem, table.progress.order.tolist(), score)

    return by_policy


def by_levels(policy: ThesisPolicy) -> Step:
    """The bandwidth phase: one flow after the other at the best level that fits its path."""

    def step(problem: Problem, assignment: Sequence[int], rng: np.random.Generator) -> Served:
        table = Table(problem, policy)
        view, progress = table.view, table.progress
        for task in progress.order.tolist():
            table.act(int(np.searchsorted(view.nodes, assignment[task])))
        while (found := table.look()) != OVER:
            if not found:
                return _shortfall(table)
            level, _ = table.best(BANDWIDTH)
            table.act(level)
        ends = zip(view.flow_src.tolist(), view.flow_dst.tolist(), progress.path.tolist(), strict=True)
        paths = tuple(path_of(problem, view, node_at(progress, a), node_at(progress, b), q) for a, b, q in ends)
        return Allocation(paths, tuple(progress.rates.tolist()))

    return step


def _shortfall(table: Table) -> Shortfall:
    """The flow whose turn it is, and what its path has left."""
    view, progress = table.view, table.progress
    q = int(progress.done[PATH])
    path = slice(view.path_first[q], view.path_first[q + 1]) if q >= 0 else slice(0, 0)
    left = (progress.spare[view.path_resource[path]] / view.path_times[path]).min(initial=np.inf)
    return Shortfall(int(progress.queue[progress.done[GIVEN]]), max(0.0, float(left)) if q >= 0 else 0.0)


@dataclass(frozen=True)
class ThesisPpo:
    """A solver of the thesis. ``policy`` None: the one in ``file``, loaded at the first decision."""

    name: str
    summary: str
    file: Path
    learned_bandwidth: bool
    policy: ThesisPolicy | None = None

    def using(self, file: Path | None) -> Self:
        return replace(self, policy=load_thesis_policy(file or self.file, *self._heads))

    @property
    def _heads(self) -> tuple[str, ...]:
        return (MAPPING, BANDWIDTH) if self.learned_bandwidth else (MAPPING,)

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        """A decision takes about a millisecond, so a time limit changes nothing."""
        refuse_goals(self.name, problem)
        reason = obstacle(problem) or (None if _takes(problem) else TOO_LARGE)
        if reason is not None:
            return Result(self.name, SearchTrace.of(problem).considered, reason=reason)
        policy = self.policy or _loaded(self.file, *self._heads)
        serve = by_levels(policy) if self.learned_bandwidth else by_importance
        odds: dict[str, float] = {}
        result = Baseline(self.name, self.summary, placer(policy, odds), serve).solve(problem, seed=seed)
        return replace(result, advice=Advice(policy.version, odds)) if result.feasible else result


def _takes(problem: Problem) -> bool:
    """Whether the network has inputs for every node and task."""
    fixed = -1 - np.concatenate([problem.flow_src, problem.flow_dst])
    nodes = np.union1d(candidates(problem), fixed[fixed >= 0])
    return len(nodes) <= NODES and len(problem.tasks) <= TASKS


_loaded = cache(load_thesis_policy)

CES_PPO_THESIS = ThesisPpo("ces-ppo-thesis", "the thesis's network: nodes, then bandwidth levels", SHIPPED, True)
PPO_BALANCE = ThesisPpo("ppo-balance", "the thesis's mapping by PPO, rates by importance", SHIPPED_BALANCE, False)
THESIS_LEARNED = (CES_PPO_THESIS, PPO_BALANCE)
