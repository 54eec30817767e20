"""How fast a malleable job is at each size, from the few sizes at which it was measured.

The time for a unit of work with n workers is taken to be ``a + b/n + c(n - 1)``, all at least 0: what does not get
shorter with more workers, what is shared out among them, and what each one adds. (Optimus, Peng et al., EuroSys 2018,
fits speeds of parameter servers in this way.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EXPONENT: Final = 0.8
HALF_LIFE_S: Final = 3600.0  # in which a measurement loses half of its weight
LEAST_WEIGHT: Final = 0.1  # an old measurement still says more than none
TRUST: Final = np.array([0.02, 0.02, 0.1])
"""In each of a prior's parts, against one measurement's relative error. Two measurements say little of what workers
add, on which much depends at larger sizes."""


class SpeedModel(Protocol):
    """``known``: whether rates are units/s; else they only compare sizes with each other."""

    @property
    def known(self) -> bool: ...

    def rate(self, size: int) -> float:
        """Units/s with this many workers, more than 0. Sizes begin at 1."""


@dataclass(frozen=True)
class Measurement:
    """``rate``: units/s at ``size`` workers; ``age_s``: by how much it is older than the newest one. Raises ValueError
    where a rate is not positive or a size less than 1."""

    size: int
    rate: float
    age_s: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 1 or not (math.isfinite(self.rate) and self.rate > 0):
            raise ValueError(f"a rate of {self.rate} at size {self.size} cannot have been measured")

    @property
    def weight(self) -> float:
        return max(LEAST_WEIGHT, math.exp2(-max(0.0, self.age_s) / HALF_LIFE_S))


@dataclass(frozen=True)
class Power:
    """n workers are n^``exponent`` times as fast as one: what is assumed of a job of which nothing is known."""

    exponent: float = EXPONENT

    @property
    def known(self) -> bool:
        return False

    def rate(self, size: int) -> float:
        return float(size**self.exponent)


@dataclass(frozen=True)
class Scaled:
    """Another model's rates, all by one factor."""

    model: SpeedModel
    factor: float

    @property
    def known(self) -> bool:
        return True

    def rate(self, size: int) -> float:
        return self.factor * self.model.rate(size)


@dataclass(frozen=True)
class Fitted:
    """Seconds for a unit of work: ``fixed``, ``shared`` by all workers, and ``added`` by each beyond the first. No size
    is taken to be faster than in proportion to its workers, or than the fastest of ``points`` if it has fewer workers
    than that: (size, units/s) as measured."""

    fixed: float
    shared: float
    added: float
    points: tuple[tuple[int, float], ...]

    @property
    def known(self) -> bool:
        return True

    @cached_property
    def _most(self) -> tuple[list[int], list[float], list[float]]:
        """The sizes of the points, rising; and from each place on the fastest, before each the most by one worker."""
        points = sorted(self.points)
        fastest = list(accumulate((rate for _, rate in reversed(points)), max, initial=0.0))[::-1]
        best = list(accumulate((rate / at for at, rate in points), max, initial=0.0))
        return [at for at, _ in points], fastest, best

    def rate(self, size: int) -> float:
        sizes, fastest, best = self._most
        place = bisect_left(sizes, size)
        most = max(fastest[place], best[place] * size)
        seconds = self.fixed + self.shared / size + self.added * (size - 1)
        return 1.0 / max(seconds, 1.0 / most)


@dataclass(frozen=True)
class Through:
    """A model's rates, corrected so that they meet ``points`` exactly: (size, units/s) with rising sizes. Between two
    of them the correction goes over from the one to the other; beyond the last it stays."""

    model: SpeedModel
    points: tuple[tuple[int, float], ...]

    @property
    def known(self) -> bool:
        return True

    @cached_property
    def _corrections(self) -> tuple[list[float], list[float]]:
        """As logarithms: the sizes, and by what factor each is corrected."""
        at = [math.log(each) for each, _ in self.points]
        return at, [math.log(rate / self.model.rate(each)) for each, rate in self.points]

    def rate(self, size: int) -> float:
        return self.model.rate(size) * math.exp(np.interp(math.log(size), *self._corrections))


POWER: Final = Power()


def hinted(hint: Mapping[int, float], prior: SpeedModel = POWER) -> SpeedModel:
    """The rates behind those that somebody says: met exactly, and fitted in between. ``hint``: size -> units/s."""
    if not hint:
        return prior
    return Through(fitted([Measurement(size, rate) for size, rate in hint.items()], prior), tuple(sorted(hint.items())))


def fitted(measured: Sequence[Measurement], prior: SpeedModel = POWER) -> SpeedModel:
    """The rates behind what was measured, at different sizes. ``prior``: their shape as far as that does not tell: one
    measurement only scales it and is met exactly; with more, what they leave open is as in the prior."""
    if not measured:
        return prior
    if len(measured) == 1:
        (one,) = measured
        return Scaled(prior, one.rate / prior.rate(one.size))
    sizes = np.array([each.size for each in measured], float)
    seconds = np.array([1.0 / each.rate for each in measured])
    usual = np.array([1.0 / prior.rate(each.size) for each in measured])
    weights = np.array([each.weight for each in measured])
    factor = float(np.exp(np.average(np.log(seconds / usual), weights=weights)))
    # The unknowns are shares of the time where each part is largest: anywhere, at the smallest size measured, and at
    # twice the largest.
    usually = float(np.exp(np.average(np.log(seconds), weights=weights)))
    scales = np.array([usually, seconds[sizes.argmin()], seconds[sizes.argmax()]])
    scales = scales / [1.0, 1.0 / sizes.min(), 2.0 * sizes.max() - 1.0]
    rows = (weights / seconds)[:, None] * _terms(sizes) * scales
    try:
        expected = factor * _parts(prior, measured) / scales
        found = _least_squares(np.vstack([rows, np.diag(TRUST)]), np.concatenate([weights, TRUST * expected]))
    except (RuntimeError, ValueError):  # it found no end, or nothing finite: speeds that no program has, side by side
        return Scaled(prior, 1.0 / factor)
    fixed, shared, added = (float(each) for each in found * scales)
    return Fitted(fixed, shared, added, tuple((each.size, each.rate) for each in measured))


def _terms(sizes: Floats) -> Floats:
    """Of each size, what the three parts are multiplied by."""
    terms: Floats = np.stack([np.ones_like(sizes), 1.0 / sizes, sizes - 1.0], axis=1)
    return terms


def _parts(prior: SpeedModel, measured: Sequence[Measurement]) -> Floats:
    """A prior's three parts in seconds, as they fit it around the sizes that were measured."""
    around = sorted({1, *(each.size for each in measured), 2 * max(each.size for each in measured)})
    rates = np.array([prior.rate(size) for size in around])
    return _least_squares(_terms(np.array(around, float)) * rates[:, None], np.ones(len(around)))


def _least_squares(rows: Floats, wanted: Floats) -> Floats:
    """The factors, none below 0, by which ``rows`` add up to what is nearest to ``wanted``."""
    from scipy.optimize import nnls  # takes a quarter of a second, and most clusters have no malleable job

    found: Floats = nnls(rows, wanted)[0]
    return found
