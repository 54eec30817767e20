"""Keep the node's workers as wanted: look, decide (purely), act, and look again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from ces_common.faults import fault_point
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.messages.wanted import ComputeWanted, WorkerWanted
from ces_common.service import Hint
from ces_edge_agent.deadline import LAST_GRACE_S, LEASE_OVER
from ces_edge_agent.documents import Kept
from ces_edge_agent.lease import Lease
from ces_edge_agent.ports import Refused, Runtime, RuntimeUnavailable
from ces_edge_agent.reconcile import (
    ALIVE,
    Action,
    Leased,
    Pause,
    Remove,
    Resume,
    Start,
    Stop,
    allocation_of,
    plan_workers,
)
from ces_edge_agent.stops import Stops

log = structlog.get_logger()
LOOK_S = 0.5  # how often workers are looked at unasked: what notices an exit
STOPPED_EXIT = 143  # as of a program that SIGTERM ended


class ComputeKeeper:
    """``changed`` is called whenever the status differs from the one before."""

    def __init__(
        self,
        node: str,
        runtime: Runtime,
        kept: Kept[ComputeWanted],
        lease: Lease,
        stops: Stops,
        networked: Callable[[], set[str]],
        stop_grace_s: float,
        changed: Callable[[], None],
    ) -> None:
        self._node, self._runtime, self._kept, self._lease = node, runtime, kept, lease
        self._stops = stops
        self._networked, self._grace_s, self._changed = networked, stop_grace_s, changed
        self.hint = Hint()
        self.observed: Mapping[str, WorkerStatus] = {}
        self._refused: dict[str, WorkerStatus] = {}
        self._busy: dict[str, Action] = {}  # allocation -> its action under way
        self._tasks: set[asyncio.Task[None]] = set()
        self._status = Status(node=node, generation=0)

    @property
    def status(self) -> Status:
        return self._status

    def occupied(self) -> set[str]:
        """Allocations with a worker that is alive or being acted on: their holders must stay."""
        alive = {status.allocation for status in self.observed.values() if status.state in ALIVE}
        return alive | self._busy.keys()

    async def run(self) -> None:
        while True:
            try:
                await self.step()
            except RuntimeUnavailable as error:
                log.warning("the runtime does not answer", error=str(error))
            await self.hint.wait(LOOK_S)

    async def step(self) -> None:
        """One look, and the start of every action that is due."""
        busy = dict(self._busy)  # before the look: what ends meanwhile may not be visible in it yet
        self.observed = await self._runtime.workers()
        document = self._kept.current
        wanted = document.workers if document else []
        self._refused = {key: status for key, status in self._refused.items() if key in {w.key for w in wanted}}
        actions = plan_workers(
            wanted,
            {**self.observed, **self._refused},
            self._networked(),
            Leased(self._lease.holds()),
            known=document is not None,
            told=self._stops.told,
        )
        for allocation, action in actions.items():
            if allocation not in busy and allocation not in self._busy:
                self._busy[allocation] = action
                task = asyncio.create_task(self._act(allocation, action))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        self._report(document, busy)

    def _report(self, document: ComputeWanted | None, busy: Mapping[str, Action]) -> None:
        """The generation counts as reached once nothing that is not wanted is alive or can come alive any more."""
        wanted = {worker.key for worker in document.workers} if document else set()
        surplus = any(status.state in ALIVE and key not in wanted for key, status in self.observed.items())
        surplus = surplus or any(_concerns_others(allocation, action, wanted) for allocation, action in busy.items())
        epoch = document.epoch if document else ""
        before = self._status.generation if self._status.epoch == epoch else 0
        self._stops.forget_others(self.observed.keys())
        workers = [self._as_ended(key, status) for key, status in self.observed.items()]
        workers += self._refused.values()
        status = Status(
            node=self._node,
            epoch=epoch,
            generation=before if surplus or document is None else document.generation,
            workers=sorted(workers, key=lambda w: (w.allocation, w.incarnation)),
        )
        if status != self._status:
            self._status = status
            self._changed()

    def _as_ended(self, key: str, status: WorkerStatus) -> WorkerStatus:
        """A program that was told to end has not done its work, however politely it ended; and one whose lease ended
        has not failed."""
        why = self._stops.told.get(key, LEASE_OVER if status.lapsed else None)
        if status.state != "exited" or why is None:
            return status
        lapsed = status.lapsed or why == LEASE_OVER
        if not lapsed and status.exit_code != 0:
            return status
        update = {"exit_code": status.exit_code or STOPPED_EXIT, "reason": f"stopped: {why}", "lapsed": lapsed}
        return status.model_copy(update=update)

    async def _act(self, allocation: str, action: Action) -> None:
        try:
            await self._perform(action)
        except RuntimeUnavailable as error:  # tried again at the next look, not at once
            log.warning("the runtime does not answer", action=type(action).__name__, error=str(error))
        except Exception:
            # not the action itself: a worker's environment may hold secrets
            log.exception(
                "an action failed and will be tried again", action=type(action).__name__, allocation=allocation
            )
        else:
            self.hint.set()
        finally:
            del self._busy[allocation]

    async def _perform(self, action: Action) -> None:
        match action:
            case Start(worker):
                await self._start(worker)
            case Stop(key, why):
                log.info("stopping a worker", worker=key, why=why)
                self._stops.note(key, why)
                # Beyond the lease the manager waits for its margin and no longer, whatever a worker does with SIGTERM.
                left_s = max(self._lease.remaining(), 0.0) + LAST_GRACE_S
                await self._runtime.stop(key, min(self._grace_s, left_s))
            case Remove(key):
                await self._runtime.remove(key)
            case Pause(key):
                await self._runtime.pause(key)
            case Resume(key):
                await self._runtime.resume(key)

    async def _start(self, worker: WorkerWanted) -> None:
        log.info("starting a worker", worker=worker.key, job=worker.job, task=worker.task)
        try:
            await self._runtime.start(worker)
        except Refused as refusal:
            log.warning("a worker cannot be started", worker=worker.key, reason=str(refusal))
            self._refused[worker.key] = WorkerStatus(
                allocation=worker.allocation, incarnation=worker.incarnation, state="refused", reason=str(refusal)
            )
            return
        fault_point("container-started")


def _concerns_others(allocation: str, action: Action, wanted: set[str]) -> bool:
    """Whether an action under way may bring to life, or has yet to end, what is not wanted."""
    if isinstance(action, Start):
        return action.worker.key not in wanted
    return allocation not in {allocation_of(key) for key in wanted}
