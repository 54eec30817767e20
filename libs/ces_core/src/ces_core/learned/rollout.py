"""Rollouts: how a job might end if a quick rule placed all open tasks.

The choice that costs least at once is seldom best in the end, so the plans are improved: one task after the other moves
to where the whole plan costs least.
"""

from __future__ import annotations

import math

from ces_core.compiled.jit import compiled, inner
from ces_core.learned.episode import Episode
from ces_core.learned.node_features import FeatureScratch, best_next, rate_loss
from ces_core.placement.state import State, carry, link_spread, node_imbalance, put
from ces_core.placement.step import holds, imbalance_with, route_flow, step_to, unwind
from ces_core.placement.view import ProblemView

BLOCKED_COST = 0.5
"""The cost, in units of the composite, if no task finds a node; a part of the tasks costs in proportion."""
SWEEPS = 2
"""At most this often :func:`even_end` moves each task to its best node."""
TRIED = 200
"""At most this many moves of a task are tried to improve a plan."""
GAIN = 1e-9
"""The least gain of a move."""


@compiled
def end_of(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, even: bool
) -> tuple[float, float]:
    """(cost, blocked) at the end, with the next task on its trial node. Each later task goes where :func:`even_end` put
    it, or where it costs least at once, and the plan is improved from there. ``blocked``: the share of tasks without a
    node. ``scratch`` keeps the cheapest whole plan of all calls that can be followed task by task, including moves of
    the next task."""
    tasks = len(episode.order)
    first = episode.level[0] + 1
    tried = episode.placement[episode.order[first - 1]]
    level = first
    while level < tasks:
        task = episode.order[level]
        node = scratch.there[task] if even else best_next(view, state, episode, scratch, task)[1]
        if node < 0 or not step_to(view, state, episode, level, node):
            break
        level += 1
    lost = _lost(view, state, episode, level)
    cost = _cost(view, state, lost)
    blocked = (tasks - level) / tasks
    if level == tasks:
        before = scratch.end[0]
        _remember(episode, scratch, cost)
        if not even:
            cost, lost = _improve(view, state, episode, scratch, first, cost, lost)
        if cost < before:
            mended = _improve(view, state, episode, scratch, first - 1, cost, lost)[0]
            _place_anew(view, state, episode, scratch, first - 1, mended)
            step_to(view, state, episode, first - 1, tried)
            level = first
    unwind(view, state, episode, level, first)
    return cost + BLOCKED_COST * blocked, blocked


@inner
def _remember(episode: Episode, scratch: FeatureScratch, cost: float) -> None:
    if cost < scratch.end[0]:
        scratch.end[0] = cost
        for t in range(len(episode.order)):
            scratch.ended[t] = episode.placement[t]


@inner
def _place_anew(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, first: int, cost: float
) -> None:
    """With all tasks placed: remove those from number ``first`` on and place them again one by one, as a follower of
    the plan would. If that works, remember the plan with its cost on the resulting paths."""
    tasks = len(episode.order)
    for i in range(first, tasks):
        scratch.there[episode.order[i]] = episode.placement[episode.order[i]]
    unwind(view, state, episode, tasks, first)
    level = first
    while level < tasks and step_to(view, state, episode, level, scratch.there[episode.order[level]]):
        level += 1
    if level == tasks:
        _remember(episode, scratch, cost)
    unwind(view, state, episode, level, first)


@inner
def _lost(view: ProblemView, state: State, episode: Episode, level: int) -> float:
    """The satisfaction lost by the flows of the first ``level`` tasks."""
    lost = 0.0
    for i in range(episode.carried[level]):
        f = episode.trail[i]
        lost += rate_loss(view, f, state.guess[f])
    return lost


@inner
def _cost(view: ProblemView, state: State, lost: float) -> float:
    """The cost of a plan whose flows lose this much satisfaction, in units of the composite."""
    uneven = node_imbalance(view, state) + view.weights[2] * link_spread(view, state)
    cost: float = 0.5 * uneven + 0.5 * lost / max(len(view.low), 1)
    return cost


@inner
def _improve(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, first: int, cost: float, lost: float
) -> tuple[float, float]:
    """With all tasks placed: move one task after the other, from number ``first`` on and round again, to where the plan
    costs least, until no task moves or the limit is reached. Takes and returns the cost and the lost satisfaction."""
    tasks, flows = len(episode.order), max(len(view.low), 1)
    i, unmoved, tried = first, 0, 0
    while unmoved < tasks - first and tried < TRIED:
        task = episode.order[i]
        home = episode.placement[task]
        own = 0.0
        for k in range(view.flows_first[task], view.flows_first[task + 1]):
            f = view.flows_of[k]
            own += rate_loss(view, f, state.guess[f])
            scratch.path[f], scratch.rate[f] = state.trial_path[f], state.guess[f]
        _lift(view, state, episode, task)
        others = lost - own
        where, least, least_lost = home, cost - GAIN, lost
        for n in range(view.fits.shape[1]):
            if n == home or not view.fits[task, n] or not holds(view, state, task, n):
                continue
            if 0.5 * (imbalance_with(view, state, task, n) + others / flows) >= least:
                continue
            tried += 1
            if _drop(view, state, episode, task, n):
                now = others
                for k in range(view.flows_first[task], view.flows_first[task + 1]):
                    f = view.flows_of[k]
                    now += rate_loss(view, f, state.guess[f])
                costs = _cost(view, state, now)
                if costs < least:
                    where, least, least_lost = n, costs, now
            _lift(view, state, episode, task)
        if where == home:
            _put_back(view, state, episode, scratch, task, home)
            unmoved += 1
        else:
            _drop(view, state, episode, task, where)
            cost, lost, unmoved = least, least_lost, 0
        i = i + 1 if i + 1 < tasks else first
    return cost, lost


@inner
def _lift(view: ProblemView, state: State, episode: Episode, task: int) -> None:
    """Remove a task from its node, and its flows from their paths."""
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        carry(view, state, state.trial_path[f], -state.guess[f], -view.low[f])
    put(view, state, task, episode.placement[task], -1.0)


@inner
def _drop(view: ProblemView, state: State, episode: Episode, task: int, node: int) -> bool:
    """Put a lifted task on ``node``; False if one of its flows has no path there: that flow and later ones then have
    none."""
    episode.placement[task] = node
    put(view, state, task, node, 1.0)
    fits = True
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = episode.placement[src] if src >= 0 else -1 - src
        b = episode.placement[dst] if dst >= 0 else -1 - dst
        fits = fits and route_flow(view, state, f, a, b)
        if not fits:
            state.trial_path[f] = -1
    return fits


@inner
def _put_back(view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, task: int, node: int) -> None:
    """Put a lifted task back, its flows on their former paths."""
    episode.placement[task] = node
    put(view, state, task, node, 1.0)
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        state.trial_path[f], state.guess[f] = scratch.path[f], scratch.rate[f]
        carry(view, state, state.trial_path[f], state.guess[f], view.low[f])


@compiled
def even_end(view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch) -> float:
    """A quick estimate of the least final cost of node imbalance, with the next task on its trial node: each later task
    goes where balance is best, then each moves again, ignoring flows."""
    first, tasks = episode.level[0] + 1, len(episode.order)
    blocked = 0.0
    for i in range(first, tasks):
        t = episode.order[i]
        scratch.there[t] = _evenest(view, state, t)
        if scratch.there[t] >= 0:
            put(view, state, t, scratch.there[t], 1.0)
        else:
            blocked += 1.0
    for _ in range(SWEEPS):
        moved = False
        for i in range(first, tasks):
            t = episode.order[i]
            before = scratch.there[t]
            if before < 0:
                continue
            put(view, state, t, before, -1.0)
            scratch.there[t] = _evenest(view, state, t)
            put(view, state, t, scratch.there[t], 1.0)
            moved = moved or scratch.there[t] != before
        if not moved:
            break
    cost = 0.5 * node_imbalance(view, state) + BLOCKED_COST * blocked / tasks
    for i in range(first, tasks):
        t = episode.order[i]
        if scratch.there[t] >= 0:
            put(view, state, t, scratch.there[t], -1.0)
    return cost


@inner
def _evenest(view: ProblemView, state: State, task: int) -> int:
    """The node that leaves the least node imbalance with the task on it; -1 if none holds it."""
    where, least = -1, math.inf
    for n in range(view.fits.shape[1]):
        if not view.fits[task, n] or not holds(view, state, task, n):
            continue
        imbalance = imbalance_with(view, state, task, n)
        if imbalance < least:
            where, least = n, imbalance
    return where
