"""Keeps the node's workers as desired: observe, decide (in ``actions``), act, and observe again."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any

import structlog

from ces_common.bus.port import backoff_s
from ces_common.fault_points import fault_point
from ces_common.messages.desired import DesiredCompute, DesiredWorker
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.service import Hint
from ces_common.tracing import context_of, span
from ces_edge_agent.deadline import LAST_GRACE_S, LEASE_OVER
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.lease import Lease
from ces_edge_agent.lending.lender import Lender, NotLent
from ces_edge_agent.ports import Refused, Runtime, RuntimeUnavailable
from ces_edge_agent.reconcilers.actions import (
    ALIVE,
    RECLAIMED,
    Action,
    LeaseCover,
    Pause,
    Remove,
    Resume,
    SetCpu,
    Start,
    Stop,
    allocation_of,
    plan_workers,
)
from ces_edge_agent.reconcilers.graces import Graces
from ces_edge_agent.reconcilers.metrics import note_workers, reconciling
from ces_edge_agent.reconcilers.starts import Starts
from ces_edge_agent.reconcilers.stop_reasons import StopReasons
from ces_edge_agent.secrets import SecretsAway, StartedBefore

log = structlog.get_logger()
OBSERVE_S = 0.5  # how often workers are observed without a hint; an exit is noticed by that
LONG_START_S = 5.0  # what takes longer before a worker is there, such as fetching its image, is told of
LONGEST_WAIT_S = 10.0  # between two questions for secrets, or two starts from a checkpoint
STOPPED_EXIT = 143  # as of a program that SIGTERM ended
LAST_CPU = 100  # millicores, for what a worker writes before its owner's device is given back
FREEZE_S = 2.0  # a runtime that takes longer to freeze a worker holds no other's end up


class WorkerReconciler:
    """``networked``: which allocations have their network. ``secrets``: gets those of a worker; raises Refused,
    SecretsAway and StartedBefore. ``restored``: the checkpoint that a worker begins from on a node where its job's
    first task was not before, if there is one. ``changed`` is called whenever the status has changed."""

    def __init__(
        self,
        node: str,
        runtime: Runtime,
        document: StoredDocument[DesiredCompute],
        lease: Lease,
        lender: Lender | NotLent,
        starts: Starts,
        stop_reasons: StopReasons,
        graces: Graces,
        networked: Callable[[], set[str]],
        secrets: Callable[[DesiredWorker], Awaitable[Mapping[str, bytes]]],
        restored: Callable[[DesiredWorker, Callable[[], bool]], Awaitable[IO[bytes] | None]],
        stop_grace_s: float,
        changed: Callable[[], None],
    ) -> None:
        self._node, self._runtime, self._document = node, runtime, document
        self._lease, self._lender = lease, lender
        self._starts, self._stop_reasons, self._graces = starts, stop_reasons, graces
        self._networked, self._secrets, self._restored = networked, secrets, restored
        self._grace_s, self._changed = stop_grace_s, changed
        self.hint = Hint()
        self.observed: Mapping[str, WorkerStatus] = {}
        self._refused: dict[str, WorkerStatus] = {}
        self._limits: dict[str, int] = {}  # worker key -> millicores that this start of the agent has set
        self._busy: dict[str, Action] = {}  # allocation -> its action under way
        self._began: dict[str, float] = {}  # and since when
        self._waits: dict[str, str] = {}  # and what it waits for
        self._tasks: set[asyncio.Task[None]] = set()
        self._freezing = False
        self._kept: frozenset[str] | None = None  # the jobs whose checkpoints were kept last
        self._status = Status(node=node, generation=0)

    @property
    def status(self) -> Status:
        return self._status

    def occupied(self) -> set[str]:
        """Allocations with a living worker or an action under way: their sandboxes must stay."""
        alive = {status.allocation for status in self.observed.values() if status.state in ALIVE}
        return alive | self._busy.keys()

    async def run(self) -> None:
        while True:
            try:
                with reconciling("workers"):
                    await self.step()
            except RuntimeUnavailable as error:
                log.warning("the runtime does not answer", error=str(error))
            await self.hint.wait(OBSERVE_S)

    async def step(self) -> None:
        """Observe once, and begin every action that is due."""
        busy = dict(self._busy)  # before observing, which may miss what ends meanwhile
        observed = await self._runtime.workers()
        document = self._document.current
        desired = document.workers if document else []
        self.observed = self._with_vanished(desired, observed, busy) if document else observed
        starting = {action.worker.key for action in busy.values() if isinstance(action, Start)}
        note_workers(self.observed.values())
        self._graces.see(desired, self.observed.keys() | starting)
        self._limits = {key: cpu for key, cpu in self._limits.items() if key in self.observed}
        self._refused = {key: status for key, status in self._refused.items() if key in {w.key for w in desired}}
        actions = plan_workers(
            desired,
            {**self.observed, **self._refused},
            self._networked(),
            LeaseCover(self._lease.remaining()),
            known=document is not None,
            stop_reasons=self._stop_reasons.by_worker,
            lent=self._lender.lent,
            limits=self._limits,
        )
        for allocation, action in actions.items():
            if allocation not in busy and allocation not in self._busy and not self._freezing:
                self._busy[allocation], self._began[allocation] = action, asyncio.get_running_loop().time()
                task = asyncio.create_task(self._act(allocation, action))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        self._report(document, busy)
        await self._tidy(document)

    async def freeze(self) -> None:
        """The owner has the device back: no worker that is known gets CPU from now on. Those that are being stopped go
        on with little. What follows is up to the next step: all of them end, even if the device is lent again before
        it. Where no time is left, they are not frozen first."""
        stopping = {allocation for allocation, action in self._busy.items() if isinstance(action, Stop)}
        alive = [key for key, status in self.observed.items() if status.state in ALIVE]
        self._stop_reasons.add(RECLAIMED, *(key for key in alive if key not in self._stop_reasons.by_worker))
        if not self._lender.left_s():
            self.hint.set()
            return
        self._freezing = True  # a step that stopped one now would have it frozen after its SIGTERM
        try:
            await asyncio.gather(*(self._freeze(key, allocation_of(key) not in stopping) for key in alive))
        finally:
            self._freezing = False
            self.hint.set()

    async def _freeze(self, key: str, whole: bool) -> None:
        try:
            async with asyncio.timeout(FREEZE_S):
                if whole:
                    await self._runtime.pause(key)
                await self._runtime.limit_cpu(key, min(LAST_CPU, self._cpu_of(key)), usual_weight=True)
        except (RuntimeUnavailable, OSError) as error:
            log.warning("a worker could not be frozen", worker=key, error=str(error) or "it took too long")

    def _cpu_of(self, key: str) -> int:
        """Millicores that a worker has anyway, where that is known."""
        document = self._document.current
        return next((each.cpu for each in (document.workers if document else ()) if each.key == key), LAST_CPU)

    async def _tidy(self, document: DesiredCompute | None) -> None:
        """Once nothing else is alive, checkpoints of jobs that are over can go."""
        if document is None or self._status.generation != document.generation or document.checkpoints is None:
            return
        kept = frozenset(document.checkpoints).union(each.job for each in document.workers if each.checkpoint)
        if kept != self._kept:
            await self._runtime.keep_checkpoints(kept)
            self._kept = kept

    def _with_vanished(
        self, desired: Collection[DesiredWorker], observed: Mapping[str, WorkerStatus], busy: Mapping[str, Action]
    ) -> Mapping[str, WorkerStatus]:
        """What is observed, and as ended what was started and is not there: somebody removed it. Where an action is
        under way, the look may have missed what it did."""
        settled = {worker.key for worker in desired if worker.allocation not in busy}
        vanished = settled & self._starts.by_worker.keys() - observed.keys()
        starting = {allocation for allocation, action in busy.items() if isinstance(action, Start)}
        shown = {key: status for key, status in observed.items() if status.allocation not in starting}
        self._starts.see(shown, {worker.key for worker in desired})
        return {**observed, **{key: self._starts.gone(key) for key in vanished}}

    def _report(self, document: DesiredCompute | None, busy: Mapping[str, Action]) -> None:
        """Update the status. A generation is reached once no other worker is alive or can come alive any more."""
        desired = {worker.key for worker in document.workers} if document else set()
        surplus = any(status.state in ALIVE and key not in desired for key, status in self.observed.items())
        surplus = surplus or any(_concerns_others(allocation, action, desired) for allocation, action in busy.items())
        epoch = document.epoch if document else ""
        before = self._status.generation if self._status.epoch == epoch else 0
        self._stop_reasons.keep_only(self.observed.keys())
        # A desired worker that is there and does not run yet is news to nobody: if it hangs, its deadline is to end.
        told = {key: each for key, each in self.observed.items() if each.state != "starting" or key not in desired}
        workers = [self._as_ended(key, status) for key, status in told.items()]
        workers += self._refused.values()
        workers += self._long_starts(desired)
        status = Status(
            node=self._node,
            epoch=epoch,
            generation=before if surplus or document is None else document.generation,
            workers=sorted(workers, key=lambda w: (w.allocation, w.incarnation)),
        )
        if status != self._status:
            self._status = status
            self._changed()

    def _long_starts(self, desired: set[str]) -> list[WorkerStatus]:
        """Desired workers that are still being prepared after a while: the manager is to wait for them."""
        now = asyncio.get_running_loop().time()
        starts = [
            action.worker
            for allocation, action in self._busy.items()
            if isinstance(action, Start) and now - self._began[allocation] >= LONG_START_S
        ]
        return [
            WorkerStatus(
                allocation=worker.allocation,
                incarnation=worker.incarnation,
                state="starting",
                reason=self._waits.get(worker.allocation),
            )
            for worker in starts
            if worker.key in desired and worker.key not in self.observed
        ]

    def _as_ended(self, key: str, status: WorkerStatus) -> WorkerStatus:
        """The status to report: a worker that was told to end has not succeeded, even if it exited with 0, and one that
        its lease or its device's owner ended has not failed."""
        why = self._stop_reasons.by_worker.get(key, LEASE_OVER if status.lapsed else None)
        if status.state in ALIVE:
            return status.model_copy(update={"cpu": self._limits.get(key)})
        if status.state != "exited" or why is None:
            return status
        flags = {"lapsed": status.lapsed or why == LEASE_OVER, "reclaimed": why == RECLAIMED}
        if not any(flags.values()) and status.exit_code != 0:
            return status
        update = {"exit_code": status.exit_code or STOPPED_EXIT, "reason": f"stopped: {why}", **flags}
        return status.model_copy(update=update)

    async def _act(self, allocation: str, action: Action) -> None:
        try:
            await self._perform(action)
        except RuntimeUnavailable as error:  # tried again at the next step, not at once
            log.warning("the runtime does not answer", action=type(action).__name__, error=str(error))
        except Exception:
            # the action itself is not logged: a worker's environment may hold secrets
            log.exception(
                "an action failed and will be tried again", action=type(action).__name__, allocation=allocation
            )
        else:
            self.hint.set()
        finally:
            del self._busy[allocation], self._began[allocation]
            self._waits.pop(allocation, None)

    async def _perform(self, action: Action) -> None:
        match action:
            case Start(worker):
                with self._traced(worker):
                    await self._start(worker)
            case Stop(key, why):
                log.info("stopping a worker", worker=key, why=why)
                self._stop_reasons.add(why, key)
                # After the lease the manager waits for its margin only, so a worker's grace must end soon after the
                # lease.
                left_s = max(self._lease.remaining(), 0.0) + LAST_GRACE_S
                await self._stop(key, min(self._graces.by_worker.get(key, self._grace_s), left_s))
            case Remove(key):
                await self._runtime.remove(key)
            case Pause(key):
                await self._runtime.pause(key)
            case Resume(key):
                await self._runtime.resume(key)
            case SetCpu(key, cpu):
                self._limits.pop(key, None)  # until it is set, it may be either
                await self._runtime.limit_cpu(key, cpu)
                self._limits[key] = cpu

    async def _stop(self, key: str, grace_s: float) -> None:
        """Earlier than after its grace where the device's owner has it back, and with little CPU until then."""
        if 0 < self._lender.left_s() < math.inf:
            await self._freeze(key, whole=True)
        stopping = asyncio.create_task(self._runtime.stop(key, min(grace_s, self._lender.left_s())))
        over = asyncio.create_task(self._lender.over())
        try:
            await asyncio.wait((stopping, over), return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                await self._runtime.stop(key, 0.0)
            await stopping
        finally:
            over.cancel()
            stopping.cancel()  # where it has not ended, the next step stops again

    def _traced(self, worker: DesiredWorker) -> AbstractContextManager[object]:
        document = self._document.current
        context = (document.traces or {}).get(f"{worker.job}.{worker.attempt}") if document else None
        if context_of(context) is None or context is None:
            return nullcontext()
        told: dict[str, Any] = {"task": worker.task, "incarnation": worker.incarnation}
        return span("start worker", context, job=worker.job, attempt=worker.attempt, **told)

    def _still_starts(self, worker: DesiredWorker) -> bool:
        """Whether lease and desired state are as when it was decided: while an image was fetched the node may have been
        given up, and the worker may run elsewhere."""
        document = self._document.current
        desired = document is not None and _as_started(worker) in map(_as_started, document.workers)
        return desired and self._lease.holds() and self._lender.lent

    async def _start(self, worker: DesiredWorker) -> None:
        log.info("starting a worker", worker=worker.key, job=worker.job, task=worker.task)
        try:
            await self._runtime.prepare(worker)
            with await self._checkpoint_of(worker) as checkpoint:
                secrets = await self._secrets_of(worker)
                if secrets is None or not self._still_starts(worker):
                    log.info("a worker was prepared that must no longer start", worker=worker.key)
                    return
                await self._start_from(worker, secrets, checkpoint)
        except StartedBefore as said:  # and nothing is left of it: it has vanished
            log.warning("a worker that has run is gone", worker=worker.key, reason=str(said))
        except Refused as refusal:
            log.warning("a worker cannot be started", worker=worker.key, reason=str(refusal))
            self._refused[worker.key] = WorkerStatus(
                allocation=worker.allocation, incarnation=worker.incarnation, state="refused", reason=str(refusal)
            )
            return
        fault_point("container-started")
        self._starts.add(worker.key)

    async def _start_from(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes], checkpoint: IO[bytes] | None
    ) -> None:
        try:
            await self._runtime.start(worker, secrets, checkpoint)
        except RuntimeUnavailable:
            if checkpoint is not None:  # which would be fetched again at once
                await self._pause(worker, LONGEST_WAIT_S)
            raise

    async def _checkpoint_of(self, worker: DesiredWorker) -> AbstractContextManager[IO[bytes] | None]:
        if not worker.restore:
            return nullcontext()
        self._waits[worker.allocation] = "fetches its checkpoint"
        found = await self._restored(worker, lambda: self._still_starts(worker))
        self._waits.pop(worker.allocation, None)
        return nullcontext() if found is None else found

    async def _secrets_of(self, worker: DesiredWorker) -> Mapping[str, bytes] | None:
        """Waits for as long as it takes; None where the worker must start no longer."""
        failures = 0
        while self._still_starts(worker):
            try:
                return await self._secrets(worker)
            except SecretsAway as error:
                if not failures:
                    log.warning("a worker waits for its secrets", worker=worker.key, reason=str(error))
                self._waits[worker.allocation] = f"waits for its secrets: {error}"
                failures += 1
                await self._pause(worker, min(backoff_s(failures), LONGEST_WAIT_S) * random.uniform(0.5, 1.0))
        return None

    async def _pause(self, worker: DesiredWorker, seconds: float) -> None:
        """Ends early where the worker must start no longer."""
        until = asyncio.get_running_loop().time() + seconds
        # A lease that ends tells nobody, so it is looked at.
        while self._still_starts(worker) and (left := until - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, OBSERVE_S))


def _concerns_others(allocation: str, action: Action, desired: set[str]) -> bool:
    """Whether an action under way may start, or has yet to stop, a worker that is not desired."""
    if isinstance(action, Start):
        return action.worker.key not in desired
    return allocation not in {allocation_of(key) for key in desired}


def _as_started(worker: DesiredWorker) -> DesiredWorker:
    """Without what may change while it is prepared: where its checkpoint is to be had, whenever a copy comes or goes,
    and an amount of CPU that is set once it runs."""
    if not (worker.checkpoints or worker.elastic_cpu):
        return worker
    return worker.model_copy(update={"checkpoints": [], **({"cpu": 0} if worker.elastic_cpu else {})})
