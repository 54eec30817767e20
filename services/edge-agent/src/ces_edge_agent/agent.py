"""The agent: receives the desired state, reconciles the node with it, and reports. Cut off from the manager, it goes
on within its lease."""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import AsyncExitStack
from functools import partial
from uuid import uuid4

import psutil
import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, BusUnavailable, Message, RemoteError, backoff_s
from ces_common.messages.agent_queries import LogQuery
from ces_common.messages.base import Message as WireMessage
from ces_common.messages.confinement import ConfinementReport
from ces_common.messages.desired import DesiredCompute, DesiredNetwork
from ces_common.messages.reports import OTHER_MACHINE, LeaseGrant, LinkReport, LinkStatus
from ces_common.repetition import Repetition
from ces_common.service import Hint
from ces_edge_agent import network_answers
from ces_edge_agent.checkpoints.service import Checkpoints
from ces_edge_agent.checkpoints.shelf import Shelf
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.energy.account import Account
from ces_edge_agent.heartbeats import Beats, encoded
from ces_edge_agent.inputs.service import InputService
from ces_edge_agent.lease import Clocks, Lease
from ces_edge_agent.lending import lender
from ces_edge_agent.logs import ProgressReader, answer_log
from ces_edge_agent.measurement import measured
from ces_edge_agent.ports import Network, Runtime
from ces_edge_agent.reconcilers.graces import Graces
from ces_edge_agent.reconcilers.network import NetworkReconciler
from ces_edge_agent.reconcilers.starts import Starts
from ces_edge_agent.reconcilers.stop_reasons import StopReasons
from ces_edge_agent.reconcilers.workers import WorkerReconciler
from ces_edge_agent.scores import service as scores
from ces_edge_agent.secrets import Secrets
from ces_edge_agent.settings import AgentSettings

log = structlog.get_logger()
PROGRESS_S = 0.5
HOUSEKEEPING_S = 600.0
ANSWER_S = 10.0  # how long a heartbeat waits for its answer before it is known how long leases are: a third of one
MANAGERS_WORD = "word from the manager"
ASKED_AT_ONCE = 8  # heartbeats that wait for their answers


class Agent:
    """``seed``: of the key that the node has joined with. ``account``: of the node's energy; None where nothing tells
    of it."""

    def __init__(
        self,
        settings: AgentSettings,
        bus: Bus,
        runtime: Runtime,
        network: Network,
        clocks: Clocks,
        seed: str,
        account: Account | None = None,
    ) -> None:
        self._settings, self._bus, self._runtime, self._network, self._clocks = settings, bus, runtime, network, clocks
        node, folder = settings.node, settings.state_dir
        self._lease = Lease(folder, clocks)
        self._workers_document = StoredDocument(folder / "desired-compute.json", DesiredCompute, node)
        self._network_document = StoredDocument(folder / "desired-network.json", DesiredNetwork, node)
        self._report_hint, self._data_hint, self._beat_hint, self._resync_hint = Hint(), Hint(), Hint(), Hint()
        self._lender = lender.make(settings, clocks, self._worker_pids, self._reclaimed, self._lent)
        self.checkpoints = Checkpoints(
            node,
            seed,
            runtime,
            network,
            Shelf(folder / "checkpoint-copies"),
            self._workers_document,
            self._network_document,
            settings.checkpoint_copy_s,
            settings.worker_disk,
            lambda: self._lender.lent,
            self._data_hint.set,
        )
        self._inputs = InputService(
            node, settings.datasets, network, settings.host_address, folder / "data-port", self.checkpoints
        )
        self.network = NetworkReconciler(
            node, runtime, network, self._network_document, self._inputs, self._occupied, self._network_changed
        )
        self.workers = WorkerReconciler(
            node,
            runtime,
            self._workers_document,
            self._lease,
            self._lender,
            Starts(folder / "started.json"),
            StopReasons(folder / "stopped.json"),
            Graces(folder / "graces.json"),
            self.network.networked,
            Secrets(bus, node, seed).of,
            self.checkpoints.restore,
            settings.stop_grace_s,
            self._workers_changed,
        )
        self._progress = ProgressReader(node, runtime.logs, clocks.steady)
        self._scores = scores.make(node, settings.measure, folder, clocks.boot, self._needed_for, self._data_hint.set)
        self._answered = False  # whether the last heartbeat that the manager had time to answer renewed the lease
        self._judged = float("-inf")  # when that one was sent
        self._answer_s = ANSWER_S
        self._known = False  # whether the manager takes this machine for the node; else it reports nothing
        self._caught_up = False  # whether the desired state was read since the lease has ended
        self._catching_up = asyncio.Lock()
        self._unread, self._read_again = 0, float("-inf")  # failures, and when the next try may come
        self._waits_for = MANAGERS_WORD
        self._connected, self._reading_progress = False, asyncio.Lock()
        self._beats = Beats(
            node,
            uuid4().hex,
            settings.heartbeat_s,
            clocks,
            runtime,
            network,
            self._lender,
            account,
            lambda: self._workers_document.current,
            lambda: self.workers.observed,
        )
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """Why the agent is not ready; None when it is."""
        return None if self._answered and self._lease.holds() else self._waits_for

    def close(self) -> None:
        """Close the server of inputs."""
        self._inputs.close()

    async def reconcile(self) -> None:
        """Keep the node as desired, connected or not."""
        parts = (self.network, self.workers, self.checkpoints, self._lender, self._scores)
        await asyncio.gather(*(part.run() for part in parts), self._housekeeping())

    async def communicate(self) -> None:
        """Everything that needs the bus. Can be called again after it raised BusError."""
        node = self._settings.node
        if not self._connected:  # a lost connection comes back by itself; a second one would stay open beside it
            await self._bus.connect()
            self._connected = True
        async with AsyncExitStack() as subscriptions:
            subscriptions.push_async_callback((await self._bus.kv_subscribe(node, self._take)).close)
            handlers = {"logs": self._logs, "measure": self._scores.answer} | network_answers.of(self._network)
            handlers |= {word: partial(lender.answer, self._lender, word) for word in lender.WORDS}
            for operation, handler in handlers.items():
                serving = await self._bus.serve(subjects.agent_rpc(node, operation), handler)
                subscriptions.push_async_callback(serving.close)
            await asyncio.gather(
                self._resync(),
                self._send_heartbeats(),
                self._send_reports(),
                self._send_links(),
                self._send_data(),
                self._send_progress_repeatedly(),
            )

    # Desired state

    async def _take(self, key: str, data: bytes | None) -> None:
        if not data:
            return  # none yet, or deleted as the node left the cluster: its workers end with their lease
        if key == subjects.desired_key(self._settings.node, "compute"):
            if self._workers_document.offer(data):
                self.workers.hint.set()
                self.checkpoints.hint.set()
        elif self._network_document.offer(data):
            self.network.hint.set()
            self.workers.hint.set()

    async def _read_desired(self) -> None:
        """Raises BusError, also where a document that the node holds is gone: a controller makes it again, and it may
        say something else by now."""
        node, gone = self._settings.node, []
        for kind in subjects.DESIRED_KINDS:
            document = await self._bus.request(subjects.fetch(node, kind))
            await self._take(subjects.desired_key(node, kind), document)
            held = self._workers_document if kind == "compute" else self._network_document
            if not document and held.current is not None:
                gone.append(kind)
        if gone:
            raise BusUnavailable(f"the spec store has no document of this node: {', '.join(gone)}")

    async def _resync(self) -> None:
        """Read the desired state now and then, since any message may be lost. All nodes lose the broker together, so
        each waits a time of its own, and longer after each failure."""
        failures = 0
        while True:
            try:
                await self._read_desired()
                failures, wait_s = 0, self._settings.resync_s
            except BusError as error:
                log.info("the desired state cannot be read yet", error=str(error))
                failures += 1
                wait_s = min(backoff_s(failures), self._settings.resync_s)
            await self._resync_hint.wait(wait_s * random.uniform(0.5, 1.0))

    async def _reconnected(self) -> None:
        self._resync_hint.set()

    # Reports

    async def _send_heartbeats(self) -> None:
        """One each interval, also while earlier ones are measured or wait for their answers: what was lost delays
        nothing, and what comes late counts all the same."""
        psutil.cpu_percent()
        asked: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as asking:
            while True:
                sent = self._clocks.steady()
                task = asking.create_task(self._ask_for_lease(sent))
                asked.add(task)
                task.add_done_callback(asked.discard)
                if len(asked) >= ASKED_AT_ONCE:
                    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                await self._beat_hint.wait(max(self._settings.heartbeat_s - (self._clocks.steady() - sent), 0.1))

    async def _ask_for_lease(self, sent: float) -> None:
        subject, beat = subjects.heartbeat(self._settings.node), await self._beats.next()
        try:
            raw = await self._bus.request(subject, encoded(beat), timeout_s=self._answer_s)
            grant = LeaseGrant.model_validate_json(raw)
            if not self._known:
                self._known = True
                self._report_hint.set()
            if not self._lease.holds():
                await self._catch_up(grant)
            self._lease.renew(sent, grant.lease_s)
            self._caught_up = False
            self._answer_s = max(grant.lease_s / 3, self._settings.heartbeat_s)
            self._note_answer(sent, True)
        except (BusError, ValueError) as error:
            newest = sent >= self._judged  # after a reboot, a late refusal may come behind the first grant
            if newest and isinstance(error, RemoteError) and error.code == OTHER_MACHINE:
                self._step_back()
            self._note_answer(sent, False, str(error))
        self.workers.hint.set()

    def _step_back(self) -> None:
        """Another machine has this node's lease, by a copy of its credential. After a reboot the earlier boot has it
        for a while, and nothing of that runs any more."""
        if self._known or self._lease.remaining() > -math.inf:
            log.warning("another machine, or an earlier boot of this one, has this node's lease: all workers end here")
        self._known, self._waits_for = False, "the lease, which another machine or an earlier boot has"
        self._lease.give_up()

    async def _catch_up(self, grant: LeaseGrant) -> None:
        """After the lease has ended, workers desired before may run elsewhere by now: read what is desired before any
        starts. Once is enough, since changes are heard; a whole site comes back together, so each failure makes the
        next try come later. Raises BusError, OutdatedDocument."""
        async with self._catching_up:
            if not self._caught_up:
                now = asyncio.get_running_loop().time()
                if now < self._read_again:
                    raise BusUnavailable("the desired state could not be read, and is tried again soon")
                self._unread += 1
                wait_s = min(backoff_s(self._unread), self._settings.resync_s)
                self._read_again = now + wait_s * random.uniform(0.5, 1.0)
                await self._read_desired()
                self._caught_up, self._unread = True, 0
        self._waits_for = "what compute-ctl wants it to run"
        self._workers_document.check_reached(grant.epoch, grant.least_generation)
        self._waits_for = MANAGERS_WORD

    def _note_answer(self, sent: float, answered: bool, error: str = "") -> None:
        if sent < self._judged:  # a later heartbeat has told already
            return
        self._judged = sent
        if answered != self._answered:
            if answered:
                log.info("the lease is renewed")
                for hint in (self._report_hint, self._network.links_changed, self._data_hint):
                    hint.set()  # what was said meanwhile may have been lost
            else:
                log.warning("the lease is not renewed", error=error, lease_left_s=round(self._lease.remaining(), 1))
            self._answered = answered

    async def _send_reports(self) -> None:
        """Send both reports whenever one changed, and again, since any message may be lost."""
        repetition = Repetition(self._settings.heartbeat_s)
        while True:
            await self._send_progress()  # a worker's last progress is sent before its end is reported
            applied, status = self.network.applied, self.workers.status
            if self._known and repetition.due(asyncio.get_running_loop().time(), applied, status):
                await self._report("applied", applied)
                await self._report("status", status)
            if await self._report_hint.wait(self._settings.heartbeat_s):
                repetition.restart()

    async def _send_links(self) -> None:
        """Send the state of all links, and the keys by which they are encrypted, whenever that changed, and again."""
        repetition = Repetition(self._settings.heartbeat_s)
        while True:
            links = await measured(self._network.links, list[LinkStatus](), self._settings.heartbeat_s)
            keys = await measured(self._network.encryption, None, self._settings.heartbeat_s)
            report = LinkReport(node=self._settings.node, links=links, encryption=keys)
            if (links or keys) and self._known and repetition.due(asyncio.get_running_loop().time(), report):
                await self._report("links", report)
            if await self._network.links_changed.wait(self._settings.heartbeat_s):
                repetition.restart()

    async def _send_data(self) -> None:
        """Send how workers are confined, which datasets the node offers, what it has of checkpoints and how fast it is,
        whenever that has changed, and again: folders come and go."""
        repetition = Repetition(self._settings.heartbeat_s)
        confined = ConfinementReport(node=self._settings.node, confinement=self._runtime.confinement)
        while True:
            offered, stored, scored = await self._inputs.report(), self.checkpoints.report, self._scores.report
            if self._known and repetition.due(asyncio.get_running_loop().time(), offered, stored, scored):
                await self._report("confinement", confined)
                if offered is not None:
                    await self._report("data", offered)
                if stored.says_anything:
                    await self._report("checkpoints", stored)
                if scored is not None:
                    await self._report("scores", scored)
            if await self._data_hint.wait(self._settings.heartbeat_s):
                repetition.restart()

    async def _send_progress_repeatedly(self) -> None:
        while True:
            await self._send_progress()
            await asyncio.sleep(PROGRESS_S)

    async def _send_progress(self) -> None:
        document = self._workers_document.current
        if document is None:
            return
        async with self._reading_progress:
            for progress in await self._progress.read(document.workers):
                await self._report("progress", progress)

    async def _report(self, kind: subjects.ReportKind, report: WireMessage) -> None:
        """Publish a report; without a bus it is lost, which costs nothing: each is repeated, but for progress."""
        try:
            await self._bus.publish(subjects.report(self._settings.node, kind), report.encode())
        except BusError as error:
            (log.debug if kind == "progress" else log.info)("a report found no bus", kind=kind, error=str(error))

    async def _logs(self, message: Message) -> bytes:
        query = LogQuery.model_validate_json(message.data)
        subjects.token(query.allocation, "allocation")
        return (await answer_log(self._runtime.logs, query, self.workers.observed)).encode()

    async def _housekeeping(self) -> None:
        while True:
            await self._runtime.logs.discard(self._settings.log_keep_s, self._occupied())
            await asyncio.sleep(HOUSEKEEPING_S)

    # Between the reconcilers

    def _occupied(self) -> set[str]:
        return self.workers.occupied()

    def _network_changed(self) -> None:
        self.workers.hint.set()
        self._report_hint.set()

    def _worker_pids(self) -> list[int]:
        return [status.pid for status in self.workers.observed.values() if status.pid is not None] + self._scores.pids

    def _needed_for(self) -> str | None:
        """What the node cannot be measured for now; None where it can."""
        if not self._known:
            return self._waits_for
        if not self._lender.lent:
            return "its owner has the device"
        document = self._workers_document.current
        return "workers run there" if self.workers.occupied() or (document and document.workers) else None

    async def _reclaimed(self) -> None:
        self._beat_hint.set()
        await self.workers.freeze()

    def _lent(self) -> None:
        self._beat_hint.set()
        self.workers.hint.set()

    def _workers_changed(self) -> None:
        self.network.hint.set()
        self._report_hint.set()
