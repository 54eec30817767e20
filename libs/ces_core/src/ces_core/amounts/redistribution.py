"""All amounts of a cluster dealt afresh, as Optimus and Tiresias do: to its running tasks and to one that it chose."""

from __future__ import annotations

import numpy as np

from ces_core.amounts.choice import Choice
from ces_core.amounts.speeds import believed
from ces_core.amounts.state import CPU, GPU, State, World
from ces_core.compiled.jit import compiled
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray


@compiled
def deal_by_gain(world: World, kinds: IntArray, state: State, e: int, agent: int, choice: Choice) -> None:
    """Optimus: each task gets the least amounts. Then one CPU or GPU after the other goes where it is believed to save
    most time for each that the task has already, until nothing is gained."""
    tasks = _tasks(state, e, agent, choice)
    count = len(tasks)
    given = np.empty((count, 2), dtype=np.int64)
    for i in range(count):
        given[i] = world.least
    left = world.capacity[agent] - given.sum(axis=0)
    gains = np.zeros((count, 2))
    for i in range(count):
        _gains(world, kinds, state, e, tasks[i], given[i], gains[i])
    while count:
        best, at, what = 0.0, -1, 0
        for i in range(count):
            for r in range(2):
                if left[r] > 0 and gains[i, r] > best:
                    best, at, what = gains[i, r], i, r
        if at < 0:
            break
        given[at, what] += 1
        left[what] -= 1
        _gains(world, kinds, state, e, tasks[at], given[at], gains[at])
    _hand_out(world, state, e, agent, choice, tasks, given)


@compiled
def _gains(world: World, kinds: IntArray, state: State, e: int, task: int, given: IntArray, gains: FloatArray) -> None:
    """Sets ``gains`` (2,): what one more CPU, or one more GPU, is believed to save."""
    fit, rest = world.fit[kinds[task]], 1.0 - state.progress[e, task]
    now = rest / believed(fit, given[CPU], given[GPU])
    for r in range(2):
        gains[r] = 0.0
        if given[r] < world.most[r]:
            more = rest / believed(fit, given[CPU] + (r == CPU), given[GPU] + (r == GPU))
            gains[r] = (now - more) / given[r]


@compiled
def deal_by_service(world: World, state: State, e: int, agent: int, choice: Choice) -> None:
    """Tiresias: GPUs go one by one to the half of the tasks with less service so far, what is being dealt included, and
    there to the one that started first; CPUs go evenly to those that got a GPU."""
    tasks = _tasks(state, e, agent, choice)
    count = len(tasks)
    given = np.zeros((count, 2), dtype=np.int64)
    left = world.capacity[agent].copy()
    while left[GPU] > 0:
        at = _least_served(world, state, e, tasks, given)
        if at < 0:
            break
        given[at, GPU] += 1
        left[GPU] -= 1
    served = 0
    for i in range(count):
        served += given[i, GPU] > 0
    if served:
        even = min(left[CPU] // served, world.most[CPU])
        for i in range(count):
            if given[i, GPU] > 0:
                given[i, CPU] = even
                left[CPU] -= even
        for i in range(count):  # less than one for each is left, or nobody may have more
            if left[CPU] > 0 and given[i, GPU] > 0 and given[i, CPU] < world.most[CPU]:
                given[i, CPU] += 1
                left[CPU] -= 1
    _hand_out(world, state, e, agent, choice, tasks, given)


@compiled
def _least_served(world: World, state: State, e: int, tasks: IntArray, given: IntArray) -> int:
    """Which of the tasks gets the next GPU; -1 where all have as many as one may get."""
    count = len(tasks)
    most = world.most[GPU] if world.elastic[0] else world.least[GPU]
    service, start = np.empty(count), np.empty(count)
    open_tasks = 0
    for i in range(count):
        full = given[i, GPU] >= most
        open_tasks += not full
        service[i] = np.inf if full else given[i, GPU] + state.service[e, tasks[i]]
        start[i] = state.time[e] if state.start[e, tasks[i]] < 0 else state.start[e, tasks[i]]
    if open_tasks == 0:
        return -1
    order = np.argsort(service, kind="mergesort")
    for first, last in ((0, count // 2), (count // 2, count)):
        best = -1
        for j in range(first, last):
            i = order[j]
            if np.isfinite(service[i]) and (best < 0 or start[i] < start[best]):
                best = i
        if best >= 0:
            return best
    return -1


@compiled
def _tasks(state: State, e: int, agent: int, choice: Choice) -> IntArray:
    """Those that run, and at last the one that was chosen, if any."""
    runs, slot = state.runs[e, agent], choice.slot[e, agent]
    tasks = np.empty(runs + (slot >= 0), dtype=np.int64)
    tasks[:runs] = state.running[e, agent, :runs]
    if slot >= 0:
        tasks[runs] = state.pending[e, agent, slot]
    return tasks


@compiled
def _hand_out(world: World, state: State, e: int, agent: int, choice: Choice, tasks: IntArray, given: IntArray) -> None:
    """Running tasks have their amounts from now on; those of the chosen one become part of the choice."""
    runs = state.runs[e, agent]
    state.free[e, agent] = world.capacity[agent]
    for i in range(runs):
        state.amounts[e, tasks[i]] = given[i]
        state.free[e, agent] -= given[i]
    if len(tasks) > runs:
        choice.cpus[e, agent], choice.gpus[e, agent] = given[runs, CPU], given[runs, GPU]
