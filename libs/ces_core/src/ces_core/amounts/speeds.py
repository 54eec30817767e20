"""How far a task comes in a slot, by its amounts and by how far it is; and what Optimus believes of that.

A slot adds ``steady + bending * sqrt(1.2 - progress)``, and a task is done once its progress is 1. Image tasks add 0.25
with any amounts, language tasks bend with tanh(GPUs / 16); a task of a measured profile adds a slot's five seconds by
what it takes, 14 seconds of start included (arXiv 2302.00571 and its public runs).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.amounts.settings import IMAGE, LANGUAGE, Profiles, Setting
from ces_core.compiled.jit import compiled
from ces_core.model.problem import FloatArray

SLOT_S, START_S = 5.0, 14.0
REACH = 1.2
"""A bending task's speed would be 0 at this progress."""
NOTHING = 0.001
"""What an amount of 0 counts as where Optimus divides by it."""


class Speeds(NamedTuple):
    """(kinds, CPUs + 1, GPUs + 1) each; 0 below the least amounts."""

    steady: FloatArray
    bending: FloatArray


def speeds(setting: Setting, profiles: Profiles | None = None) -> Speeds:
    """Of the setting's kinds. Raises ValueError where profiles are needed and one is missing."""
    cpus, gpus = setting.most
    steady, bending = np.zeros((2, len(setting.kinds), cpus + 1, gpus + 1))
    for i, kind in enumerate(setting.kinds):
        if setting.measured:
            if profiles is None or kind not in profiles:
                raise ValueError(f"{setting.name} needs the measured profile of {kind}")
            steady[i] = SLOT_S / (profiles[kind][: cpus + 1, : gpus + 1] + START_S)
        elif kind == IMAGE:
            steady[i] = 0.25
        elif kind == LANGUAGE:
            bending[i] = np.tanh(np.arange(gpus + 1) / 16.0)
    for array in (steady, bending):
        array[:, : setting.least[0]] = 0.0
        array[:, :, : setting.least[1]] = 0.0
    return Speeds(steady, bending)


@compiled
def advance(steady: float, bending: float, progress: float) -> float:
    """What a slot adds to a task's progress (0..1)."""
    return max(0.0, steady + bending * math.sqrt(max(REACH - progress, 0.0)))


@compiled
def believed(fit: FloatArray, cpus: float, gpus: float) -> float:
    """Optimus's speed of a task with these amounts, by the five numbers of a fit: CPUs stand for its parameter servers,
    GPUs for its workers (Peng et al., EuroSys 2018, eq. 3)."""
    return float(1.0 / (fit[0] / gpus + fit[1] + fit[2] * gpus / cpus + fit[3] * gpus + fit[4] * cpus))


def fits(table: Speeds, *, swapped: bool) -> FloatArray:
    """(kinds, 5) fits by least squares to the speed of a task that begins, over all amounts.

    ``swapped``: as in the published runs, whose table of speeds lists CPUs first and whose amounts list GPUs first, so
    that their Optimus takes the one for the other. A kind that cannot be fitted keeps the fit's start, all ones.
    """
    from scipy.optimize import curve_fit

    start = table.steady + table.bending * math.sqrt(REACH)
    cpus, gpus = (np.arange(float(size)) for size in start.shape[1:])
    cpus[0] = gpus[0] = NOTHING
    # The amounts run over the CPUs first; a table of speeds that is read row by row runs over the GPUs first.
    amounts = np.tile(cpus, len(gpus)), np.repeat(gpus, len(cpus))
    found = np.ones((len(start), 5))
    for i, table_of_kind in enumerate(start):
        speed = table_of_kind.reshape(-1) if swapped else table_of_kind.T.reshape(-1)
        try:
            found[i] = curve_fit(_optimus, amounts, speed)[0]
        except RuntimeError:
            continue
    return found


def _optimus(amounts: tuple[FloatArray, FloatArray], a: float, b: float, c: float, d: float, e: float) -> FloatArray:
    cpus, gpus = amounts
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        speed: FloatArray = 1.0 / (a / gpus + b + c * gpus / cpus + d * gpus + e * cpus)
    return speed
