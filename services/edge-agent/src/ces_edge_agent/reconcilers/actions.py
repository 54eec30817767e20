"""Which actions bring a node's sandboxes and workers to the desired state. Pure: values in, actions out.

Invariants: at most one worker of an allocation is alive, each incarnation is started at most once, and nothing starts
without a lease, or while the device is its owner's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ces_common.disconnect import outlives_s
from ces_common.messages.desired import DesiredNetwork, DesiredWorker, Endpoint
from ces_common.messages.reports import WorkerStatus
from ces_edge_agent.deadline import LEASE_OVER

ALIVE = frozenset({"starting", "running", "paused"})
RECLAIMED = "the owner has the device back"


@dataclass(frozen=True, slots=True)
class Start:
    worker: DesiredWorker


@dataclass(frozen=True, slots=True)
class Stop:
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Remove:
    key: str


@dataclass(frozen=True, slots=True)
class Pause:
    key: str


@dataclass(frozen=True, slots=True)
class Resume:
    key: str


@dataclass(frozen=True, slots=True)
class SetCpu:
    key: str
    cpu: int  # millicores


Action = Start | Stop | Remove | Pause | Resume | SetCpu


@dataclass(frozen=True, slots=True)
class LeaseCover:
    """Which workers may be alive: all while the lease holds, afterwards those that outlive it for long enough.
    ``left_s``: seconds until the lease ends, negative afterwards, and without end where another machine has it: then
    none may."""

    left_s: float

    @property
    def holds(self) -> bool:
        return self.left_s > 0

    def covers(self, worker: DesiredWorker) -> bool:
        return self.left_s > -math.inf and self.left_s + outlives_s(worker.disconnect) > 0


def allocation_of(key: str) -> str:
    return key.rpartition(".")[0]


def plan_workers(
    desired: Collection[DesiredWorker],
    observed: Mapping[str, WorkerStatus],
    networked: Collection[str],
    leased: LeaseCover,
    known: bool = True,
    stop_reasons: Mapping[str, str] = MappingProxyType({}),
    lent: bool = True,
    limits: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Action]:
    """The next action of each allocation that needs one; later ones follow when this one is done.

    Parameters
    ----------
    desired: the workers that the node should run.
    observed: worker key -> what the runtime shows.
    networked: allocations whose network is in place.
    leased: which workers the lease covers.
    known: False if no desired state was ever received; then, while the lease holds, no worker is stopped for being
        unknown.
    stop_reasons: worker key -> why it was told to end before. Such a stop is completed, whatever has changed since.
    lent: whether workers may run here at all.
    limits: worker key -> millicores that were set, of those whose CPU may change; where none are known, they are set.
    """
    by_key = {worker.key: worker for worker in desired}
    actions: dict[str, Action] = {}
    blocked: set[str] = set()  # allocations with a living worker: no second one is started
    for key, status in sorted(observed.items()):
        allocation = status.allocation
        worker = by_key.get(key)
        alive = status.state in ALIVE
        if alive:
            blocked.add(allocation)
        action: Action | None = None
        if alive and key in stop_reasons:
            action = Stop(key, stop_reasons[key])
        elif alive and not lent:
            action = Stop(key, RECLAIMED)
        elif worker is None:
            if known:
                action = Stop(key, "no longer desired") if alive else Remove(key)
            elif alive and not leased.holds:  # without its document, whether it may go on is unknown
                action = Stop(key, LEASE_OVER)
        elif alive and not leased.covers(worker):
            action = Stop(key, LEASE_OVER)
        elif worker.paused and status.state == "running":
            action = Pause(key)
        elif status.state in ("running", "paused") and worker.elastic_cpu and limits.get(key) != worker.cpu:
            action = SetCpu(key, worker.cpu)  # before it goes on with more than is held for it
        elif not worker.paused and status.state == "paused":
            action = Resume(key)
        if action is not None and not isinstance(actions.get(allocation), Stop):
            actions[allocation] = action
    for worker in desired if lent else ():
        if worker.allocation in blocked or worker.allocation in actions or worker.key in observed:
            continue
        if worker.allocation in networked and leased.holds and not worker.paused:
            actions[worker.allocation] = Start(worker)
    return actions


def plan_sandboxes(
    desired: DesiredNetwork | None, sandboxes: Collection[str], occupied: Collection[str]
) -> tuple[list[Endpoint], list[str]]:
    """Endpoints without a sandbox, and allocations whose sandbox is neither desired nor in use."""
    if desired is None:
        return [], []
    endpoints = {endpoint.allocation: endpoint for endpoint in desired.endpoints}
    missing = [endpoint for allocation, endpoint in endpoints.items() if allocation not in sandboxes]
    stale = sorted(set(sandboxes) - endpoints.keys() - set(occupied))
    return missing, stale


def networked_allocations(desired: DesiredNetwork | None, ready_jobs: Collection[str]) -> set[str]:
    """Allocations whose attempt has its whole network in place on this node."""
    if desired is None:
        return set()
    return {endpoint.allocation for endpoint in desired.endpoints if endpoint.job in ready_jobs}
