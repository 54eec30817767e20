"""Who is next to whom, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Neighbours(NamedTuple):
    """Per node its neighbours in one direction: entries ``first[n]`` up to ``first[n + 1]``, by rising link."""

    first: IntArray  # (nodes + 1,)
    node: NDArray[np.int32]  # (links,)
    link: NDArray[np.int32]  # (links,)

    @staticmethod
    def of(nodes: int, here: IntArray, there: IntArray) -> Neighbours:
        order = np.argsort(here, kind="stable")
        first = np.zeros(nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(here, minlength=nodes), out=first[1:])
        return Neighbours(first, there[order].astype(np.int32), order.astype(np.int32))
