"""FGD's idea for clusters: a task goes where least of what is left becomes of no use; large ones may have to wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.gpus.clusters import DELAY, Booleans, Clusters
from ces_core.gpus.model import Asked, Integers
from ces_core.gpus.rules import Outlook, Refuse
from ces_core.gpus.sight import HOST, PRESSURE, SUMS, Seen, Usual, look

WASTED = len(SUMS) + HOST.index("milli newly of no use")


@dataclass(frozen=True)
class Frugal:
    """A :class:`ces_core.gpus.rules.ClusterRule`, where tasks usually come as ``usual``. It refuses as ``refuse``."""

    usual: Usual

    def choose(self, clusters: Clusters, task: Asked, outlook: Outlook) -> int:
        tasks = np.array([task], np.int64)
        seen = look(clusters.fleet, clusters.size, clusters.total[None], tasks, [outlook.more], self.usual)
        return DELAY if waits(seen)[0] else int(least_wasted(seen)[0])


def waits(seen: Seen) -> Booleans:
    """Of S streams, (S,): whether the task fits nowhere, or smaller ones need the room."""
    found: Booleans = (seen.hosts < 0).all(axis=1) | (seen.task[:, PRESSURE] > Refuse.used)
    return found


def least_wasted(seen: Seen) -> Integers:
    """Of S streams, (S,): the first of those clusters where the task fits that lose least by it."""
    found: Integers = np.where(seen.hosts >= 0, -seen.clusters[:, :, WASTED], -np.inf).argmax(axis=1)
    return found
