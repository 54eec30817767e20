"""What a path is, as an object and as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Path(NamedTuple):
    """One way through the network. A path within a node has no link."""

    nodes: tuple[int, ...]
    links: tuple[int, ...]
    loads: tuple[tuple[int, int], ...]
    """``(resource, how often)``: what one unit of bandwidth uses. Resources are the links, then the media:
    resource ``len(links) + m`` is medium ``m``, which a path may use more than once."""


class FlatPaths(NamedTuple):
    """The paths between C chosen nodes as arrays, for compiled code.

    Paths ``pair_first[a * C + b]`` up to the next entry lead from the a-th to the b-th chosen node, in the order of
    :meth:`PathTable.between`; path ``q`` loads ``resource[path_first[q] : path_first[q + 1]]``, each ``times`` times:
    its links in order, then the media. The path from a node to itself is there and loads nothing.
    """

    pair_first: NDArray[np.int64]  # (C * C + 1,)
    path_first: NDArray[np.int64]  # (paths + 1,)
    resource: NDArray[np.int64]
    times: NDArray[np.float64]
    truncated: NDArray[np.bool_]  # (C * C,) whether the pair has more shortest paths than are kept

    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in self)
