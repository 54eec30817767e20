"""What a policy sees of a job's proposed plans, and of the cluster and queue around them. Plans are compared with each
other, so the same numbers serve clusters of any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.model.problem import BoolArray, Cluster, FloatArray
from ces_core.placement.value import LINK_TICKS, NODE_TICKS, Value, shipped
from ces_core.search.longrun import FORGONE
from ces_rl.envs.streams.proposals import Proposals
from ces_rl.envs.streams.stream import MEAN_S, Stream

PLAN = (
    "criterion-below-best",
    "composite-below-best",
    "imbalance-above-least",
    "satisfaction-below-most",
    "satisfaction-below-alone",
    "node-value-below-most",
    "link-value-below-most",
    "largest-hole",
    "squared-room-below-most",
    "nodes-per-task",
    "bandwidth-taken",
    "fullest-link",
    "is-first",
    "is-wait",
    "rule-waits",
)
"""Columns of a plan; the last row of a job is that of waiting, all zeros but the last two columns. ``criterion``: the
composite with the learned value of what is left, as ``search-longrun`` maximises it."""
CONTEXT = (
    "cpu-used",
    "memory-used",
    "bandwidth-used",
    "imbalance",
    "running",
    "waiting",
    "tasks",
    "cpu-asked",
    "memory-asked",
    "bandwidth-asked",
    "alone",
    "waited",
    "may-wait",
    "link-width",
)
DURATIONS = ("duration", "freed-soon", "freed-later")
"""Further columns of the context where jobs say how long they run: this job, and the share of the CPU in use that ends
within one and three tenths of a mean duration."""
PLAN_AT = {name: column for column, name in enumerate(PLAN)}
UNIT = 0.01
"""In which scores and values are told."""
Numbers = NDArray[np.float32]


def seen(stream: Stream, found: Proposals, *, durations: bool) -> tuple[Numbers, Numbers, BoolArray]:
    """(P + 1, plan columns), (context columns,), and (P + 1,) what may be chosen: plans that are there and like none
    before them, and waiting while something runs. Some plan is there."""
    cluster, view = stream.cluster, found.view
    free = cluster.node_free[:2] - found.node_load[:, :2]
    links_left = cluster.bandwidth_free[: len(cluster.link_used)] - found.link_load
    imbalance = _imbalance(cluster, found, view.weights)
    satisfaction = found.satisfaction
    value = shipped()
    nodes = _node_value(value, cluster, free)
    links = _link_value(value, float(view.high.mean()) if len(view.high) else 0.0, links_left)
    composite = 0.5 * (1.0 - imbalance) + 0.5 * satisfaction
    criterion = 0.5 * (1.0 - value.balance * imbalance) + 0.5 * satisfaction + nodes + links
    there = found.there
    unit = _unit(cluster)
    kind = stream.kinds[stream.job]  # type: ignore[index]
    room = ((free / unit[:, None]) ** 2).sum(axis=(1, 2))
    best = int(np.argmax(np.where(there, criterion, -np.inf)))
    rule_waits = bool(satisfaction[best] < kind.alone - FORGONE) and stream.may_wait
    capacity = np.maximum(cluster.link_capacity, 1e-9)
    plans = np.zeros((len(there) + 1, len(PLAN)))
    plans[:-1, 0] = _below(criterion, there) / UNIT
    plans[:-1, 1] = _below(composite, there) / UNIT
    plans[:-1, 2] = _below(-imbalance, there) / UNIT
    plans[:-1, 3] = 10.0 * _below(satisfaction, there)
    plans[:-1, 4] = 10.0 * np.maximum(kind.alone - satisfaction, 0.0)
    plans[:-1, 5] = _below(nodes, there) / UNIT
    plans[:-1, 6] = _below(links, there) / UNIT
    plans[:-1, 7] = (free / unit[:, None]).min(axis=1).max(axis=1)
    plans[:-1, 8] = _below(room, there)
    plans[:-1, 9] = (found.node_load[:, 0] > 0).sum(axis=1) / len(view.demand)
    plans[:-1, 10] = 10.0 * found.link_load.sum(axis=1) / capacity.sum()
    plans[:-1, 11] = ((cluster.link_used + found.link_load) / capacity).max(axis=1, initial=0.0)
    plans[0, 12] = 1.0
    plans[:-1][~there] = 0.0
    plans[-1, 13] = 1.0
    plans[-1, 14] = float(rule_waits)
    context = _context(stream, cluster, found, kind.alone)
    if durations:
        context += _durations(stream)
    allowed = np.append(there & ~_repeated(found), stream.may_wait)
    return np.clip(plans, -20.0, 20.0).astype(np.float32), np.array(context, np.float32), allowed


def room_value(cluster: Cluster) -> float:
    """What the nodes' residual capacity is worth to later jobs, by the value that ships."""
    return float(_node_value(shipped(), cluster, cluster.node_free[None, :2])[0])


def _below(values: FloatArray, there: BoolArray) -> FloatArray:
    """(P,) how far below the largest; at most 0."""
    found: FloatArray = values - np.max(values[there])
    return found


def _repeated(found: Proposals) -> BoolArray:
    whole = np.concatenate([found.node_load.reshape(len(found.there), -1), found.link_load], axis=1).round(6)
    return np.array([any(np.array_equal(whole[i], whole[j]) for j in range(i)) for i in range(len(whole))])


def _imbalance(cluster: Cluster, found: Proposals, weights: FloatArray) -> FloatArray:
    """(P,) load imbalance L with each plan."""
    total = np.zeros(len(found.there))
    for row in range(2):
        there = cluster.node_capacity[row] > 0
        load = (cluster.node_used[row] + found.node_load[:, row])[:, there] / cluster.node_capacity[row, there]
        total += weights[row] * load.std(axis=1)
    there = cluster.link_capacity > 0
    if there.any():
        load = (cluster.link_used + found.link_load)[:, there] / cluster.link_capacity[there]
        total += weights[2] * load.std(axis=1)
    return total


def _unit(cluster: Cluster) -> FloatArray:
    """(2,) mean capacity of the nodes that have any."""
    there = cluster.node_capacity[:2] > 0
    found: FloatArray = cluster.node_capacity[:2].sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return found


def _node_value(value: Value, cluster: Cluster, free: FloatArray) -> FloatArray:
    """(P,) sum over nodes of P(free CPU) P(free memory), ``free``: (P, 2, N)."""
    table = np.cumsum((0.0, *value.node))
    worth = np.interp(free / _unit(cluster)[:, None], (0.0, *NODE_TICKS), table)
    found: FloatArray = worth.prod(axis=1).sum(axis=1)
    return found


def _link_value(value: Value, flow: float, left: FloatArray) -> FloatArray:
    """(P,) sum over links of H(free bandwidth) in units of ``flow``, ``left``: (P, L)."""
    if flow <= 0:
        return np.zeros(len(left))
    found: FloatArray = np.interp(left / flow, (0.0, *LINK_TICKS), np.cumsum((0.0, *value.link))).sum(axis=1)
    return found


def _context(stream: Stream, cluster: Cluster, found: Proposals, alone: float) -> list[float]:
    view = found.view
    capacity, used, free = cluster.node_capacity[:2].sum(1), cluster.node_used[:2].sum(1), cluster.node_free[:2].sum(1)
    asked, share = view.demand[:, :2].sum(axis=0) / np.maximum(free, 1e-9), used / np.maximum(capacity, 1e-9)
    links, high = max(float(cluster.link_capacity.sum()), 1e-9), float(view.high.sum())
    width = float(cluster.link_capacity.mean()) if len(cluster.link_capacity) else 0.0
    mean_high = high / max(len(view.high), 1)
    now = 0.0
    for row in range(2):
        now += float(np.std(cluster.node_used[row] / np.maximum(cluster.node_capacity[row], 1e-9)))
    job = stream.job
    assert job is not None
    return [
        *share.tolist(),
        float(cluster.link_used.sum()) / links,
        now,
        len(stream.held) / 10.0,
        len(stream.waiting) / 10.0,
        len(view.demand) / 8.0,
        *asked.tolist(),
        high / links,
        alone,
        (stream.now - float(stream.arrivals[job])) / stream.scenario.patience_s,
        float(stream.may_wait),
        float(np.log1p(width / mean_high)) if mean_high > 0 else 0.0,
    ]


def _durations(stream: Stream) -> list[float]:
    job = stream.job
    assert job is not None
    total = max(sum(float(nodes[0].sum()) for nodes, _ in stream.held.values()), 1e-9)
    soon = [
        sum(float(stream.held[other][0][0].sum()) for end, other in stream.ends if end <= stream.now + within * MEAN_S)
        for within in (0.1, 0.3)
    ]
    return [min(float(stream.durations[job]) / MEAN_S, 5.0), soon[0] / total, soon[1] / total]
