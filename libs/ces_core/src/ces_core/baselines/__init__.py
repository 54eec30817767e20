"""Baselines to compare with: those of the thesis, and the rules of deployed systems.

Each joins a placement rule (most of them task by task, :mod:`.sequential`) and a bandwidth rule (:mod:`.rates`) by
:mod:`.baseline`. ``NAME+RULE`` is the placement of ``NAME`` with another bandwidth rule.
"""

from __future__ import annotations

from ces_core.baselines.best_fit import BEST_FIT
from ces_core.baselines.first_fit_decreasing import FIRST_FIT_DECREASING
from ces_core.baselines.flexitask import FLEXITASK
from ces_core.baselines.grc import GRC, GRC_SHARED
from ces_core.baselines.kubernetes import (
    KUBERNETES,
    LEAST_ALLOCATED,
    LEAST_ALLOCATED_BLIND,
    LEAST_ALLOCATED_FAIR,
    MOST_ALLOCATED,
)
from ces_core.baselines.smart import SMART, SMART_FILL
from ces_core.baselines.uniform import RANDOM, RANDOM_FILL
from ces_core.solver import Solver

BASELINES: tuple[Solver, ...] = (
    RANDOM,
    RANDOM_FILL,
    SMART,
    SMART_FILL,
    FLEXITASK,
    KUBERNETES,
    LEAST_ALLOCATED,
    LEAST_ALLOCATED_FAIR,
    LEAST_ALLOCATED_BLIND,
    MOST_ALLOCATED,
    BEST_FIT,
    FIRST_FIT_DECREASING,
    GRC,
    GRC_SHARED,
)
"""The baselines, in the order in which they are listed."""
