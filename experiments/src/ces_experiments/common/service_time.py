"""The CPU time that a cluster's central services take."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import psutil

from ces_testbed.cluster import Cluster
from ces_testbed.services import NATS, kind_of


def cpu_seconds(cluster: Cluster) -> dict[str, float]:
    """CPU seconds that the central services of each kind have used."""
    used: Counter[str] = Counter()
    for name in (NATS, *cluster.layout.managers, *cluster.layout.controllers):
        with suppress(psutil.Error):
            times = psutil.Process(cluster.supervisor.pid(name)).cpu_times()
            used[kind_of(name)] += times.user + times.system
    return dict(used)
