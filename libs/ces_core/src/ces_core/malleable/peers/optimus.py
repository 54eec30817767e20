"""Optimus: raises one job's size at a time, that of the job whose remaining time it shortens most by a fitted model of
speed.

Peng et al., "Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters", EuroSys 2018. Its model of
loss, which predicts how much work is left, is not needed: traces say how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import nnls

from ces_core.malleable.model import Running, SpeedProfile
from ces_core.malleable.policy import Decision, Moment


@lru_cache(maxsize=1024)
def fit_speed(profile: SpeedProfile) -> tuple[float, float, float]:
    """Non-negative (a, b, c) of seconds for an iteration = a / size + b + c size, by least squares of relative errors;
    Optimus's model where there are as many parameter servers as workers, at a fixed global batch."""
    sizes, seconds = np.array(profile.sizes, float), 1.0 / np.array(profile.rates)
    terms = np.stack([1.0 / sizes, np.ones_like(sizes), sizes], axis=1)
    found, _ = nnls(terms / seconds[:, None], np.ones_like(seconds))
    return float(found[0]), float(found[1]), float(found[2])


def modelled_rate(profile: SpeedProfile, size: int) -> float:
    """Iterations/s by the fitted model."""
    a, b, c = fit_speed(profile)
    return 1.0 / (a / size + b + c * size)


@dataclass(frozen=True)
class Optimus:
    """Gives each active job its smallest size, in their order, as long as GPUs last; then, while any next size fits,
    the next size to the job with the largest :func:`marginal_gain`. Decides at arrivals and ends, and every ``round_s``
    seconds."""

    round_s: float = 600.0

    def __call__(self, moment: Moment) -> Decision:
        sizes, free = {}, moment.capacity
        for each in moment.active:
            if (smallest := each.profile.sizes[0]) <= free:
                sizes[each.name] = smallest
                free -= smallest
        jobs = [each for each in moment.active if each.name in sizes]
        while offers := [
            (gain, i) for i, each in enumerate(jobs) if (gain := marginal_gain(each, sizes[each.name], free)) > 0
        ]:
            each = jobs[max(offers, key=lambda offer: (offer[0], -offer[1]))[1]]
            larger = each.profile.above(sizes[each.name])
            free -= larger - sizes[each.name]
            sizes[each.name] = larger
        return Decision(sizes, until_s=moment.now_s + self.round_s if jobs else float("inf"))


def marginal_gain(each: Running, size: int, free: int) -> float:
    """Seconds that the next larger size saves, by the model, divided by the GPUs that it adds; 0 where there is none or
    it does not fit."""
    larger = each.profile.above(size)
    if not larger or larger - size > free:
        return 0.0
    saved = each.left / modelled_rate(each.profile, size) - each.left / modelled_rate(each.profile, larger)
    return saved / (larger - size)
