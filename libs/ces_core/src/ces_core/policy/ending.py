"""How a job might end: all tasks that have no node yet are placed by a quick rule, for a trial.

What costs least at once is seldom best in the end, so plans are mended: one task after the other moves to where the
whole plan costs least.
"""

from __future__ import annotations

import math

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.state import State, _carry, _node_imbalance, _put
from ces_core.kernels.step import _holds, _imbalance_with, _lead, _step, _step_back
from ces_core.policy.episode import Episode
from ces_core.policy.judging import Sight, best_next, link_spread, rate_loss

BLOCKED_COST = 0.5
"""What it is taken to cost, in units of the composite, when no task finds a place; a part costs in proportion."""
SWEEPS = 2
"""So often, at most, :func:`even_end` moves each task to where it is best."""
TRIED = 200
"""So many moves of a task, at most, are tried to mend a plan."""
GAIN = 1e-9
"""What a move must gain."""


@compiled
def end_of(view: Compact, state: State, episode: Episode, sight: Sight, even: bool) -> tuple[float, float]:
    """(cost, blocked) at the end, with the next task where it is for a trial, and each after it where :func:`even_end`
    saw it, or where it costs least at once, and mended from there. ``blocked``: the share of the tasks that find no
    place that way. The cheapest whole plan of all calls that can be followed task by task, the next one moved, too,
    where that helps, stays in ``sight``."""
    tasks = len(episode.order)
    first = episode.level[0] + 1
    tried = episode.placement[episode.order[first - 1]]
    level = first
    while level < tasks:
        task = episode.order[level]
        node = sight.there[task] if even else best_next(view, state, episode, sight, task)[1]
        if node < 0 or not _step(view, state, episode, level, node):
            break
        level += 1
    lost = _lost(view, state, episode, level)
    cost = _cost(view, state, lost)
    blocked = (tasks - level) / tasks
    if level == tasks:
        before = sight.end[0]
        _remember(episode, sight, cost)
        if not even:
            cost, lost = _mend(view, state, episode, sight, first, cost, lost)
        if cost < before:
            mended = _mend(view, state, episode, sight, first - 1, cost, lost)[0]
            _place_anew(view, state, episode, sight, first - 1, mended)
            _step(view, state, episode, first - 1, tried)
            level = first
    while level > first:
        level -= 1
        _step_back(view, state, episode, level)
    return cost + BLOCKED_COST * blocked, blocked


@inner
def _remember(episode: Episode, sight: Sight, cost: float) -> None:
    if cost < sight.end[0]:
        sight.end[0] = cost
        for t in range(len(episode.order)):
            sight.ended[t] = episode.placement[t]


@inner
def _place_anew(view: Compact, state: State, episode: Episode, sight: Sight, first: int, cost: float) -> None:
    """With all tasks placed: takes those from number ``first`` on off their nodes, and remembers the plan, which costs
    so much on the paths that it has, if they can be put there again one after the other, as by whoever follows it."""
    tasks = len(episode.order)
    for i in range(first, tasks):
        sight.there[episode.order[i]] = episode.placement[episode.order[i]]
    level = tasks
    while level > first:
        level -= 1
        _step_back(view, state, episode, level)
    while level < tasks and _step(view, state, episode, level, sight.there[episode.order[level]]):
        level += 1
    if level == tasks:
        _remember(episode, sight, cost)
    while level > first:
        level -= 1
        _step_back(view, state, episode, level)


@inner
def _lost(view: Compact, state: State, episode: Episode, level: int) -> float:
    """Satisfaction that the flows lose that the first ``level`` tasks brought."""
    lost = 0.0
    for i in range(episode.carried[level]):
        f = episode.trail[i]
        lost += rate_loss(view, f, state.guess[f])
    return lost


@inner
def _cost(view: Compact, state: State, lost: float) -> float:
    """What a plan costs whose flows lose so much of their satisfaction, in units of the composite."""
    uneven = _node_imbalance(view, state) + view.weights[2] * link_spread(view, state)
    cost: float = 0.5 * uneven + 0.5 * lost / max(len(view.low), 1)
    return cost


@inner
def _mend(
    view: Compact, state: State, episode: Episode, sight: Sight, first: int, cost: float, lost: float
) -> tuple[float, float]:
    """With all tasks placed: moves one after the other, from number ``first`` on and round again, to where the plan
    costs least, until none of them moves or enough was tried. Takes and returns what it costs and what its flows
    lose."""
    tasks, flows = len(episode.order), max(len(view.low), 1)
    i, unmoved, tried = first, 0, 0
    while unmoved < tasks - first and tried < TRIED:
        task = episode.order[i]
        home = episode.placement[task]
        own = 0.0
        for k in range(view.flows_first[task], view.flows_first[task + 1]):
            f = view.flows_of[k]
            own += rate_loss(view, f, state.guess[f])
            sight.path[f], sight.rate[f] = state.trial_path[f], state.guess[f]
        _lift(view, state, episode, task)
        others = lost - own
        where, least, least_lost = home, cost - GAIN, lost
        for n in range(view.fits.shape[1]):
            if n == home or not view.fits[task, n] or not _holds(view, state, task, n):
                continue
            if 0.5 * (_imbalance_with(view, state, task, n) + others / flows) >= least:
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
            _put_back(view, state, episode, sight, task, home)
            unmoved += 1
        else:
            _drop(view, state, episode, task, where)
            cost, lost, unmoved = least, least_lost, 0
        i = i + 1 if i + 1 < tasks else first
    return cost, lost


@inner
def _lift(view: Compact, state: State, episode: Episode, task: int) -> None:
    """Takes a task off its node, and its flows off their paths."""
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        _carry(view, state, state.trial_path[f], -state.guess[f], -view.low[f])
    _put(view, state, task, episode.placement[task], -1.0)


@inner
def _drop(view: Compact, state: State, episode: Episode, task: int, node: int) -> bool:
    """Puts a task that was lifted on ``node``; False where one of its flows has no path there: then that one and those
    after it are carried nowhere."""
    episode.placement[task] = node
    _put(view, state, task, node, 1.0)
    fits = True
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = episode.placement[src] if src >= 0 else -1 - src
        b = episode.placement[dst] if dst >= 0 else -1 - dst
        fits = fits and _lead(view, state, f, a, b)
        if not fits:
            state.trial_path[f] = -1
    return fits


@inner
def _put_back(view: Compact, state: State, episode: Episode, sight: Sight, task: int, node: int) -> None:
    """Puts a task that was lifted where it came from, its flows on the paths that they had."""
    episode.placement[task] = node
    _put(view, state, task, node, 1.0)
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        state.trial_path[f], state.guess[f] = sight.path[f], sight.rate[f]
        _carry(view, state, state.trial_path[f], state.guess[f], view.low[f])


@compiled
def even_end(view: Compact, state: State, episode: Episode, sight: Sight) -> float:
    """The least that the nodes' imbalance may come to cost, as far as a quick rule finds: with the next task where it
    is for a trial, each task after it goes where that is evenest, then each moves again, whatever their flows."""
    first, tasks = episode.level[0] + 1, len(episode.order)
    blocked = 0.0
    for i in range(first, tasks):
        t = episode.order[i]
        sight.there[t] = _evenest(view, state, t)
        if sight.there[t] >= 0:
            _put(view, state, t, sight.there[t], 1.0)
        else:
            blocked += 1.0
    for _ in range(SWEEPS):
        moved = False
        for i in range(first, tasks):
            t = episode.order[i]
            before = sight.there[t]
            if before < 0:
                continue
            _put(view, state, t, before, -1.0)
            sight.there[t] = _evenest(view, state, t)
            _put(view, state, t, sight.there[t], 1.0)
            moved = moved or sight.there[t] != before
        if not moved:
            break
    cost = 0.5 * _node_imbalance(view, state) + BLOCKED_COST * blocked / tasks
    for i in range(first, tasks):
        t = episode.order[i]
        if sight.there[t] >= 0:
            _put(view, state, t, sight.there[t], -1.0)
    return cost


@inner
def _evenest(view: Compact, state: State, task: int) -> int:
    """The node that leaves the nodes' imbalance least with the task on it; -1 where none has room."""
    where, least = -1, math.inf
    for n in range(view.fits.shape[1]):
        if not view.fits[task, n] or not _holds(view, state, task, n):
            continue
        imbalance = _imbalance_with(view, state, task, n)
        if imbalance < least:
            where, least = n, imbalance
    return where
