"""What is counted of an agent's reconciling."""

from __future__ import annotations

from collections import Counter as Numbers
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args

from prometheus_client import Counter, Gauge, Histogram

from ces_common.messages.reports import WorkerState, WorkerStatus
from ces_common.metrics import SHORT

What = Literal["network", "workers"]
RECONCILED: Final = Histogram("ces_agent_reconcile_seconds", "Time of one look at the node", ["what"], buckets=SHORT)
FAILED: Final = Counter("ces_agent_reconciles_failed_total", "Looks that failed: no runtime answered", ["what"])
WORKERS: Final = Gauge("ces_agent_workers", "Workers that are there, by state", ["state"])
for _what in get_args(What):
    RECONCILED.labels(_what)
    FAILED.labels(_what)


@contextmanager
def reconciling(what: What) -> Iterator[None]:
    """What it raises is counted, and raised."""
    with RECONCILED.labels(what).time(), FAILED.labels(what).count_exceptions():
        yield


def note_workers(workers: Collection[WorkerStatus]) -> None:
    found = Numbers(worker.state for worker in workers)
    for state in get_args(WorkerState):
        WORKERS.labels(state).set(found[state])
