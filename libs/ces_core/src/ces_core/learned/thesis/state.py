"""The thesis's environment (4.2.1): a job's tasks are mapped to nodes one by one, then its flows get their levels.

Training and inference share these compiled moves. The masks are the thesis's: a node must have CPU, memory and GPU left
for the task, whatever happens to its flows; a level must fit the flow's path. What the thesis leaves open is read as
follows: tasks come in the order of :func:`ces_core.placement.task_order.task_order`, flows by falling minimum; ties of
Dijkstra's algorithm go to the path with the most residual bandwidth; a flow within a node gets its maximum and is no
decision.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled, inner
from ces_core.learned.thesis.schema import FLOWS, LEVELS, LIMIT, NODES, TASKS
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.task_order import task_order
from ces_core.placement.view import ProblemView

MAPPED, GIVEN, PATH = range(3)
"""Indices into ``done``: the number of tasks with a node, of flows with a rate, and the path the next flow would
take."""
OVER = -1
"""The result of :func:`look` when nothing is left to decide."""


class Progress(NamedTuple):
    """The state of a decision in progress. T tasks, F flows, C nodes, R resources as in :class:`ProblemView`."""

    order: IntArray  # (T,) tasks as they are mapped, and as they stand in the state
    queue: IntArray  # (F,) flows as they get their levels
    node_of: IntArray  # (T,)
    path: IntArray  # (F,)
    rates: FloatArray  # (F,)
    done: IntArray  # (3,)
    free: FloatArray  # (3, C) left on the nodes
    spare: FloatArray  # (R,) left on links and media
    begins: IntArray  # (R,) the node that a link leads from; -1 where none is known
    ends: IntArray  # (R,) likewise, to
    nearby: FloatArray  # (C,) bandwidth left on the node's links, together
    links: FloatArray  # (C,) how many these are
    scales: FloatArray  # (3,) 1 / the largest capacity: CPU, memory, bandwidth


def new_progress(view: ProblemView) -> Progress:
    """An empty state for a problem; call :func:`begin` next."""
    (tasks, nodes), flows, resources = view.fits.shape, len(view.low), len(view.residual)
    return Progress(
        order=np.zeros(tasks, dtype=np.int64),
        queue=np.zeros(flows, dtype=np.int64),
        node_of=np.zeros(tasks, dtype=np.int64),
        path=np.zeros(flows, dtype=np.int64),
        rates=np.zeros(flows),
        done=np.zeros(3, dtype=np.int64),
        free=np.zeros((3, nodes)),
        spare=np.zeros(resources),
        begins=np.zeros(resources, dtype=np.int64),
        ends=np.zeros(resources, dtype=np.int64),
        nearby=np.zeros(nodes),
        links=np.zeros(nodes),
        scales=np.zeros(3),
    )


@compiled
def begin(view: ProblemView, progress: Progress) -> None:
    """Reset to the state with nothing mapped."""
    progress.order[:] = task_order(view)
    _queue(view, progress.queue)
    progress.node_of[:] = -1
    progress.path[:] = -1
    progress.rates[:] = 0.0
    progress.done[:] = 0
    progress.free[:] = view.free
    progress.spare[:] = view.residual
    for k in range(2):
        progress.scales[k] = _least_positive(view.inverse[k])
    progress.scales[2] = _least_positive(view.link_inverse)
    _find_ends(view, progress)
    progress.nearby[:] = 0.0
    progress.links[:] = 0.0
    for r in range(len(view.residual)):
        for node in (progress.begins[r], progress.ends[r]):
            if node >= 0:
                progress.nearby[node] += view.residual[r]
                progress.links[node] += 1.0


@compiled
def look(view: ProblemView, progress: Progress, state: NDArray[np.float32], mask: BoolArray) -> int:
    """Sets ``state`` (WIDTH,) and ``mask`` (ACTIONS,) for the next decision: a node while tasks are left, then a level.
    Returns how many actions are open, ``OVER`` where all is decided."""
    mask[:] = False
    tasks = len(progress.order)
    if progress.done[MAPPED] < tasks:
        _see(view, progress, state)
        return _nodes_open(view, progress, mask)
    while progress.done[GIVEN] < len(progress.queue):
        flow = progress.queue[progress.done[GIVEN]]
        path = widest_path(view, progress, flow)
        progress.done[PATH] = path
        if path < 0 or view.path_first[path + 1] > view.path_first[path]:
            _see(view, progress, state)
            return _levels_open(view, progress, flow, path, mask)
        _give(view, progress, flow, path, view.high[flow])
    return OVER


@compiled
def act(view: ProblemView, progress: Progress, action: int) -> None:
    """Take an action that the mask of the latest :func:`look` admits."""
    done = progress.done
    if done[MAPPED] < len(progress.order):
        task = progress.order[done[MAPPED]]
        progress.node_of[task] = action
        for k in range(3):
            progress.free[k, action] -= view.demand[task, k]
        done[MAPPED] += 1
    else:
        flow = progress.queue[done[GIVEN]]
        _give(view, progress, flow, done[PATH], rate_of(view, flow, action))


@compiled
def rate_of(view: ProblemView, flow: int, level: int) -> float:
    """The rate of a level (eq. 4-24)."""
    low, high = view.low[flow], view.high[flow]
    rate: float = high if level == LEVELS - 1 else low + level / (LEVELS - 1) * (high - low)
    return rate


@compiled
def node_at(progress: Progress, end: int) -> int:
    """The node of a flow's end."""
    return progress.node_of[end] if end >= 0 else -1 - end


@compiled
def take(view: ProblemView, progress: Progress, path: int, rate: float) -> None:
    """Books a rate on the links of a path."""
    for j in range(view.path_first[path], view.path_first[path + 1]):
        r = view.path_resource[j]
        taken = view.path_times[j] * rate
        progress.spare[r] -= taken
        for node in (progress.begins[r], progress.ends[r]):
            if node >= 0:
                progress.nearby[node] -= taken


@inner
def _give(view: ProblemView, progress: Progress, flow: int, path: int, rate: float) -> None:
    progress.path[flow] = path
    progress.rates[flow] = rate
    take(view, progress, path, rate)
    progress.done[GIVEN] += 1


@inner
def _nodes_open(view: ProblemView, progress: Progress, mask: BoolArray) -> int:
    task = progress.order[progress.done[MAPPED]]
    found = 0
    for n in range(view.fits.shape[1]):
        fits = view.fits[task, n]
        for k in range(3):
            fits = fits and view.demand[task, k] <= progress.free[k, n]
        mask[n] = fits
        found += fits
    return found


@inner
def _levels_open(view: ProblemView, progress: Progress, flow: int, path: int, mask: BoolArray) -> int:
    found = 0
    if path < 0:
        return found
    for level in range(LEVELS):
        rate = rate_of(view, flow, level)
        fits = True
        for j in range(view.path_first[path], view.path_first[path + 1]):
            fits = fits and view.path_times[j] * rate <= progress.spare[view.path_resource[j]]
        mask[level] = fits
        found += fits
    return found


@compiled
def widest_path(view: ProblemView, progress: Progress, flow: int) -> int:
    """The path with the most residual bandwidth, the first of equals; -1 if there is no path."""
    src, dst = node_at(progress, view.flow_src[flow]), node_at(progress, view.flow_dst[flow])
    pair = src * view.fits.shape[1] + dst
    best, most = -1, -math.inf
    for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
        width = math.inf
        for j in range(view.path_first[q], view.path_first[q + 1]):
            width = min(width, progress.spare[view.path_resource[j]] / view.path_times[j])
        if width > most:
            best, most = q, width
    return best


@inner
def _see(view: ProblemView, progress: Progress, state: NDArray[np.float32]) -> None:
    """The state s = [s_p; s_v; s_d], zero for nodes and tasks that do not exist."""
    state[:] = 0.0
    scales = progress.scales
    tasks, nodes = view.fits.shape
    for n in range(nodes):
        for k in range(2):
            state[3 * n + k] = _part(progress.free[k, n] * scales[k])
        if progress.links[n] > 0.0:
            state[3 * n + 2] = _part(progress.nearby[n] / progress.links[n] * scales[2])
    first = 3 * NODES
    for i in range(tasks):
        task = progress.order[i]
        for k in range(2):
            state[first + 3 * i + k] = _part(view.demand[task, k] * scales[k])
        talk = count = 0.0
        for j in range(view.flows_first[task], view.flows_first[task + 1]):
            flow = view.flows_of[j]
            if view.flow_src[flow] == task:
                talk += 0.5 * (view.low[flow] + view.high[flow])
                count += 1.0
        if count > 0.0:
            state[first + 3 * i + 2] = _part(talk / count * scales[2])
    first += 3 * TASKS
    mapped, given = progress.done[MAPPED], progress.done[GIVEN]
    state[first] = 0.0 if mapped < tasks else 1.0
    state[first + 1] = mapped / TASKS if mapped < tasks else _part(given / FLOWS)
    state[first + 2] = tasks / TASKS
    state[first + 3] = _part(len(progress.queue) / FLOWS)
    state[first + 4] = mapped / tasks


@inner
def _part(value: float) -> float:
    return min(max(value, 0.0), LIMIT)


@inner
def _least_positive(values: FloatArray) -> float:
    """The least positive value; 0 if there is none."""
    least = math.inf
    for value in values:
        if 0.0 < value < least:
            least = value
    return least if least < math.inf else 0.0


@inner
def _queue(view: ProblemView, queue: IntArray) -> None:
    """Flows by falling minimum, in the job's order if equal."""
    for f in range(len(queue)):
        at = f
        while at > 0 and view.low[queue[at - 1]] < view.low[f]:
            queue[at] = queue[at - 1]
            at -= 1
        queue[at] = f


@inner
def _find_ends(view: ProblemView, progress: Progress) -> None:
    """The node each link leads from and to, as far as known from the paths between nodes at its ends."""
    progress.begins[:] = -1
    progress.ends[:] = -1
    nodes = view.fits.shape[1]
    for pair in range(nodes * nodes):
        for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
            last = -1
            for j in range(view.path_first[q], view.path_first[q + 1]):
                r = view.path_resource[j]
                if view.link_inverse[r] <= 0.0:  # media come after the links, and join no two nodes
                    break
                if last < 0:
                    progress.begins[r] = pair // nodes
                last = r
            if last >= 0:
                progress.ends[last] = pair % nodes
