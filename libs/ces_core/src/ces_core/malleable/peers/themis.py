"""Themis: shares of time that make the worst finish-time fairness as good as it can be.

Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020. Fairness ρ of a job is its time to the
end when sharing, by that when it had its part of the cluster alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.malleable.model import Running
from ces_core.malleable.peers.rigid import fit_in_order, fixed_size
from ces_core.malleable.policy import Decision, Moment

Array = NDArray[np.float64]
STEPS = 60


@dataclass(frozen=True)
class Claim:
    """``age_s`` since arrival, ``busy_s`` of work left at its size, ``alone_s``: what it would take from arrival to end
    alone, in whatever unit all jobs have. ``gpus``: its size."""

    age_s: float
    busy_s: float
    alone_s: float
    gpus: int


def fair_shares(claims: Sequence[Claim], capacity: int) -> list[float]:
    """Shares of time, 0 to 1, that minimise the largest ρ = (age + busy / share) / alone with at most ``capacity`` GPUs
    on average. Where several do, the one in the middle of them: it maximises the product of all distances from the
    bounds."""
    age, busy, alone, gpus = (
        np.array([getattr(claim, name) for claim in claims], float) for name in ("age_s", "busy_s", "alone_s", "gpus")
    )
    rho = _least_rho(age, busy, alone, gpus, capacity)
    least = np.minimum(busy / np.maximum(rho * alone - age, 1e-12), 1.0)
    return [float(share) for share in _middle(least, gpus, capacity)]


def _least_rho(age: Array, busy: Array, alone: Array, gpus: Array, capacity: int) -> float:
    low = float(((age + busy) / alone).max())  # every share 1
    if gpus.sum() <= capacity:
        return low
    high = max(low, 1e-9)
    while _needs(high, age, busy, alone, gpus) > capacity:
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _needs(middle, age, busy, alone, gpus) > capacity else (low, middle)
    return high


def _needs(rho: float, age: Array, busy: Array, alone: Array, gpus: Array) -> float:
    return float(gpus @ (busy / np.maximum(rho * alone - age, 1e-12)))


def _middle(least: Array, gpus: Array, capacity: int) -> Array:
    """The analytic centre of least <= x <= 1, gpus @ x <= capacity."""
    room = 1.0 - least
    spare = capacity - float(gpus @ least)
    inside = room > 1e-9
    if spare <= 1e-9 or not inside.any():
        return least
    # By the price of a GPU: log(y) + log(room - y) - price gpus y is largest where a quadratic has its root.
    low, high = 0.0, 1.0
    while _centre(room, gpus, inside, high)[1] > spare - 1.0 / high:
        high *= 2
        if high > 1e12:
            break
    for _ in range(STEPS):
        price = (low + high) / 2
        used = _centre(room, gpus, inside, price)[1]
        low, high = (price, high) if spare - used < 1.0 / price else (low, price)
    return least + _centre(room, gpus, inside, high)[0]


def _centre(room: Array, gpus: Array, inside: NDArray[np.bool_], price: float) -> tuple[Array, float]:
    """What each has above its least at a price, and the GPUs that all of them take with it."""
    cost = price * gpus
    # 1/y - 1/(room - y) = cost
    root = np.sqrt(4.0 + (cost * room) ** 2)
    more = np.where(inside, (2.0 + cost * room - root) / np.maximum(2.0 * cost, 1e-300), 0.0)
    more = np.where(cost * room < 1e-9, room / 2.0, more)
    more = np.where(inside, more, 0.0)
    return more, float(gpus @ more)


@dataclass(frozen=True)
class Themis:
    """Who is owed most runs, at the sizes asked for, decided every ``round_s`` seconds."""

    round_s: float

    def __call__(self, moment: Moment) -> Decision:
        if not moment.active:
            return Decision({})
        if sum(fixed_size(each, moment.capacity) for each in moment.active) <= moment.capacity:
            return Decision(fit_in_order(moment.active, moment.capacity))
        claims = [_claim(each, moment) for each in moment.active]
        shares = fair_shares(claims, moment.capacity)
        order = sorted(range(len(claims)), key=lambda i: -shares[i])
        sizes = fit_in_order([moment.active[i] for i in order], moment.capacity)
        return Decision(sizes, until_s=moment.now_s + self.round_s)


def _claim(each: Running, moment: Moment) -> Claim:
    """Alone means with an equal part of the cluster from its arrival on."""
    size = fixed_size(each, moment.capacity)
    rate = each.job.speeds.rate(size)
    share = min(1.0, moment.capacity / len(moment.active) / size)
    return Claim(moment.now_s - each.job.arrived_s, each.left / rate, each.job.work / rate / share, size)
