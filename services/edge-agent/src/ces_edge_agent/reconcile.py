"""What must be done so that a node's holders and workers become as wanted. Pure: values in, actions out.

The promise kept here: of one allocation at most one worker is alive, each incarnation is started at most once, and
nothing is started without a lease.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ces_common.messages.reports import WorkerStatus
from ces_common.messages.wanted import Endpoint, NetworkWanted, WorkerWanted
from ces_edge_agent.deadline import LEASE_OVER

ALIVE = frozenset({"starting", "running", "paused"})


@dataclass(frozen=True, slots=True)
class Start:
    worker: WorkerWanted


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


Action = Start | Stop | Remove | Pause | Resume


@dataclass(frozen=True, slots=True)
class Leased:
    """Which workers may live now: all while the lease holds; beyond it those that were told to keep going."""

    holds: bool

    def covers(self, worker: WorkerWanted) -> bool:
        return self.holds or worker.disconnect == "keep"


def allocation_of(key: str) -> str:
    return key.rpartition(".")[0]


def plan_workers(
    wanted: Collection[WorkerWanted],
    observed: Mapping[str, WorkerStatus],
    networked: Collection[str],
    leased: Leased,
    known: bool = True,
    told: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Action]:
    """The next action of each allocation that needs one; its later ones follow once this one is done.

    Parameters
    ----------
    wanted: the workers that the node should run.
    observed: worker key -> what the runtime shows.
    networked: allocations whose network is in place.
    leased: whether the lease still holds.
    known: False while no wanted state was ever received: then nothing is stopped for being unknown while the lease
        holds.
    told: worker key -> why it was told to end before: that is carried through, whatever has changed since.
    """
    by_key = {worker.key: worker for worker in wanted}
    actions: dict[str, Action] = {}
    blocked: set[str] = set()  # allocations with a worker alive or an action due: nothing is started beside it
    for key, status in sorted(observed.items()):
        allocation = status.allocation
        worker = by_key.get(key)
        alive = status.state in ALIVE
        if alive:
            blocked.add(allocation)
        action: Action | None = None
        if alive and key in told:
            action = Stop(key, told[key])
        elif worker is None:
            if known:
                action = Stop(key, "no longer wanted") if alive else Remove(key)
            elif alive and not leased.holds:  # whose it is, and whether it might go on, was lost with the documents
                action = Stop(key, LEASE_OVER)
        elif alive and not leased.covers(worker):
            action = Stop(key, LEASE_OVER)
        elif worker.paused and status.state == "running":
            action = Pause(key)
        elif not worker.paused and status.state == "paused":
            action = Resume(key)
        if action is not None and not isinstance(actions.get(allocation), Stop):
            actions[allocation] = action
    for worker in wanted:
        if worker.allocation in blocked or worker.allocation in actions or worker.key in observed:
            continue
        if worker.allocation in networked and leased.holds and not worker.paused:
            actions[worker.allocation] = Start(worker)
    return actions


def plan_holders(
    wanted: NetworkWanted | None, holders: Collection[str], occupied: Collection[str]
) -> tuple[list[Endpoint], list[str]]:
    """Endpoints whose holder is missing, and allocations whose holder is to go: neither wanted nor in use."""
    if wanted is None:
        return [], []
    endpoints = {endpoint.allocation: endpoint for endpoint in wanted.endpoints}
    missing = [endpoint for allocation, endpoint in endpoints.items() if allocation not in holders]
    stale = sorted(set(holders) - endpoints.keys() - set(occupied))
    return missing, stale


def networked_allocations(wanted: NetworkWanted | None, ready_jobs: Collection[str]) -> set[str]:
    """Allocations whose attempt has all of its network on this node."""
    if wanted is None:
        return set()
    return {endpoint.allocation for endpoint in wanted.endpoints if endpoint.job in ready_jobs}
