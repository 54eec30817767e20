"""What a resize costs in simulation: seconds in which a job does no work.

The figures are those of the public ElasticFlow simulator (github.com/pkusys/ElasticFlow at 04a0109): 2 s, 7 s on
clusters of 256 GPUs or more, and two seconds more for a GPU and each doubling unless workers have run on those GPUs
before; all of them 27 s more (47 s) at a restart.
"""

from __future__ import annotations

import math

LARGE_CLUSTER = 256


def resize_s(size: int, capacity: int, *, warm: bool = False, restart: bool = False) -> float:
    """Seconds that a job loses by starting ``size`` workers. ``warm``: these GPUs have held such a set before."""
    large = capacity >= LARGE_CLUSTER
    base = 7.0 if large else 2.0
    if warm:
        return base
    return base + (47.0 if large else 27.0) * restart + 2.0 * (math.log2(size) + 1)
