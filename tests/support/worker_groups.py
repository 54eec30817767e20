"""Which tests stay together where several workers share the tests out (``pytest -n 4``), and which come first.

The tests of a file stay on one worker: they share a cluster or a broker, or at least what they import. Only the files
in ``APART`` have tests that take long and share nothing: most make a cluster, or processes, and wait for them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

APART = {
    "e2e/test_dead_agent.py",
    "e2e/test_local_cluster.py",
    "e2e/test_outages.py",
    "e2e/test_partition.py",
    "integration/test_two_schedulers.py",
    "integration/test_workloads_algorithms.py",
    "integration/test_workloads_ring_training.py",
    "unit/test_at_most_once.py",
}
KINDS = ("e2e", "integration", "contract", "unit")
SHARED = "_shared"  # the fixture in e2e/conftest.py


class Scheduler(LoadScopeScheduling):
    """Hands out whole files, and single tests of the files in ``APART``, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file.removeprefix("tests/") in APART else file


def put_in_order(items: list[pytest.Item], root: Path) -> None:
    """The kinds of tests that wait most first, and of each kind the largest files: short unit tests fill the end. Files
    whose tests share a worker's cluster come before others of their kind, so that it need not live long."""
    sizes = Counter(item.path for item in items)
    sharing = {item.path for item in items if SHARED in getattr(item, "fixturenames", ())}
    items.sort(
        key=lambda item: (KINDS.index(_kind(item, root)), item.path not in sharing, -sizes[item.path], item.path)
    )


def _kind(item: pytest.Item, root: Path) -> str:
    return item.path.relative_to(root).parts[0]
