"""The agent: hears what is wanted, keeps the node so, and says how it is. Cut off, it goes on within its lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import psutil
import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message, RemoteError
from ces_common.messages.queries import LinkProbe, LogQuery
from ces_common.messages.reports import Heartbeat, LeaseGrant, LinkReport
from ces_common.messages.wanted import ComputeWanted, NetworkWanted
from ces_common.service import Hint
from ces_edge_agent.compute import ComputeKeeper
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.documents import Kept
from ces_edge_agent.inputs.keeper import InputKeeper
from ces_edge_agent.lease import Clocks, Lease
from ces_edge_agent.logs import ProgressTail, answer_log, discard_old_logs
from ces_edge_agent.network import NetworkKeeper
from ces_edge_agent.ports import Network, Runtime, RuntimeUnavailable
from ces_edge_agent.settings import AgentSettings
from ces_edge_agent.stops import Stops

log = structlog.get_logger()
PROGRESS_S = 0.5
HOUSEKEEPING_S = 600.0
T = TypeVar("T")


def machine_clocks() -> Clocks:
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = boot.read_text().strip() if boot.exists() else str(int(psutil.boot_time()))
    if hasattr(time, "CLOCK_BOOTTIME"):
        return Clocks(steady=lambda: time.clock_gettime(time.CLOCK_BOOTTIME), wall=time.time, boot=name)
    return Clocks(steady=time.monotonic, wall=time.time, boot=name)


class Agent:
    def __init__(self, settings: AgentSettings, bus: Bus, runtime: Runtime, network: Network, clocks: Clocks) -> None:
        self._settings, self._bus, self._runtime, self._network, self._clocks = settings, bus, runtime, network, clocks
        node, folder = settings.node, settings.state_dir
        self._boot = uuid4().hex
        self._lease = Lease(folder, clocks)
        self._compute_kept = Kept(folder / "wanted-compute.json", ComputeWanted, node)
        self._network_kept = Kept(folder / "wanted-network.json", NetworkWanted, node)
        self._report_hint = Hint()
        self._inputs = InputKeeper(node, settings.datasets, network, settings.host_address, folder / "data-port")
        self.network = NetworkKeeper(
            node, runtime, network, self._network_kept, self._inputs, self._occupied, self._network_changed
        )
        self.compute = ComputeKeeper(
            node,
            runtime,
            self._compute_kept,
            self._lease,
            Stops(folder / "stopped.json"),
            self.network.networked,
            settings.stop_grace_s,
            self._compute_changed,
        )
        self._tail = ProgressTail(node, runtime)
        self._heard = False
        self._connected = False
        self._tailing = asyncio.Lock()
        bus.on_reconnect(self._read_wanted)

    def missing(self) -> str | None:
        """What keeps it from being fully at work; None when ready."""
        return None if self._heard and self._lease.holds() else "word from the manager"

    def close(self) -> None:
        """Let go of what it holds open."""
        self._inputs.close()

    async def keep(self) -> None:
        """Keep the node as wanted, connected or not."""
        await asyncio.gather(self.network.run(), self.compute.run(), self._housekeeping())

    async def communicate(self) -> None:
        """Everything that needs the bus. May be called again after it raised BusError."""
        node = self._settings.node
        if not self._connected:  # a connection that is lost comes back by itself: a second one would stay beside it
            await self._bus.connect()
            self._connected = True
        async with AsyncExitStack() as subscriptions:
            wanted = await self._bus.kv_subscribe(node, self._wanted)
            subscriptions.push_async_callback(wanted.close)
            logs = await self._bus.serve(subjects.agent_rpc(node, "logs"), self._logs)
            subscriptions.push_async_callback(logs.close)
            probes = await self._bus.serve(subjects.agent_rpc(node, "probe"), self._probe)
            subscriptions.push_async_callback(probes.close)
            await asyncio.gather(
                self._read_repeatedly(),
                self._heartbeats(),
                self._reports(),
                self._links(),
                self._data(),
                self._progress(),
            )

    # what is wanted

    async def _wanted(self, key: str, data: bytes | None) -> None:
        if data is None:
            return  # a deleted document is no wish to stop: the node left the cluster, its workers end by their lease
        if key == subjects.wanted_key(self._settings.node, "compute"):
            if self._compute_kept.offer(data):
                self.compute.hint.set()
        elif self._network_kept.offer(data):
            self.network.hint.set()
            self.compute.hint.set()

    async def _read_wanted(self) -> None:
        for kind in subjects.WANTED_KINDS:
            key = subjects.wanted_key(self._settings.node, kind)
            await self._wanted(key, await self._bus.kv_get(key))

    async def _read_repeatedly(self) -> None:
        while True:
            try:
                await self._read_wanted()
                wait_s = self._settings.resync_s
            except BusError as error:
                log.info("the wanted state cannot be read yet", error=str(error))
                wait_s = 1.0
            await asyncio.sleep(wait_s)

    # what is said

    async def _heartbeats(self) -> None:
        subject = subjects.heartbeat(self._settings.node)
        psutil.cpu_percent()
        while True:
            sent = self._clocks.steady()
            try:
                beat = await self._heartbeat()
                raw = await self._bus.request(subject, beat.encode(), timeout_s=self._settings.heartbeat_s)
                grant = LeaseGrant.model_validate_json(raw)
                if not self._lease.holds():  # what was wanted before may run elsewhere by now: nothing may start by it
                    await self._read_wanted()
                self._lease.renew(sent, grant.lease_s)
                self._said(True)
            except (BusError, ValueError) as error:
                self._said(False, str(error))
            self.compute.hint.set()
            spent = self._clocks.steady() - sent
            await asyncio.sleep(max(self._settings.heartbeat_s - spent, 0.1))

    def _said(self, heard: bool, error: str = "") -> None:
        if heard != self._heard:
            if heard:
                log.info("the manager answers")
                self._report_hint.set()
            else:
                log.warning("the manager does not answer", error=error, lease_left_s=round(self._lease.remaining(), 1))
            self._heard = heard

    async def _heartbeat(self) -> Heartbeat:
        links, flows = await self._measured(self._network.usage(), ([], []))
        return Heartbeat(
            node=self._settings.node,
            boot=self._boot,
            cpu=psutil.cpu_percent() * 10 * (psutil.cpu_count() or 1),
            memory=psutil.virtual_memory().used,
            workers=await self._measured(self._runtime.usage(), []),
            links=links,
            flows=flows,
        )

    async def _measured(self, measuring: Awaitable[T], nothing: T) -> T:
        """A measurement, or nothing where there is none now: a sign of life must not wait for it."""
        try:
            async with asyncio.timeout(self._settings.heartbeat_s):
                return await measuring
        except (TimeoutError, RuntimeUnavailable, DataPlaneError) as error:
            log.warning("nothing measured", error=str(error) or "it took too long")
            return nothing

    async def _reports(self) -> None:
        """Both reports whenever one changed, and again and again: any may be lost."""
        node = self._settings.node
        while True:
            await self._say_progress()  # a worker's last words come before the news of its end
            try:
                await self._bus.publish(subjects.report(node, "applied"), self.network.applied.encode())
                await self._bus.publish(subjects.report(node, "status"), self.compute.status.encode())
            except BusError as error:
                log.info("reports wait for the bus", error=str(error))
            await self._report_hint.wait(self._settings.heartbeat_s)

    async def _links(self) -> None:
        """The state of all links as soon as one changed, and again and again."""
        while True:
            links = await self._measured(self._network.links(), [])
            if links:
                report = LinkReport(node=self._settings.node, links=links)
                try:
                    await self._bus.publish(subjects.report(self._settings.node, "links"), report.encode())
                except BusError as error:
                    log.info("the state of links waits for the bus", error=str(error))
            await self._network.link_news.wait(self._settings.heartbeat_s)

    async def _data(self) -> None:
        """What can be read here, again and again: folders come and go."""
        while True:
            report = await self._inputs.report()
            if report is not None:
                try:
                    await self._bus.publish(subjects.report(self._settings.node, "data"), report.encode())
                except BusError as error:
                    log.info("what is offered waits for the bus", error=str(error))
            await asyncio.sleep(self._settings.heartbeat_s)

    async def _progress(self) -> None:
        while True:
            await self._say_progress()
            await asyncio.sleep(PROGRESS_S)

    async def _say_progress(self) -> None:
        document = self._compute_kept.current
        if document is None:
            return
        async with self._tailing:
            for progress in await asyncio.to_thread(self._tail.look, document.workers):
                try:
                    await self._bus.publish(subjects.report(self._settings.node, "progress"), progress.encode())
                except BusError as error:
                    log.debug("progress lost", error=str(error))

    async def _logs(self, message: Message) -> bytes:
        query = LogQuery.model_validate_json(message.data)
        subjects.token(query.allocation, "allocation")
        answer = await asyncio.to_thread(answer_log, self._runtime, query, self.compute.observed)
        return answer.encode()

    async def _probe(self, message: Message) -> bytes:
        query = LinkProbe.model_validate_json(message.data)
        try:
            return (await self._network.probe(query)).encode()
        except DataPlaneError as error:
            raise RemoteError("not-probed", str(error)) from error

    async def _housekeeping(self) -> None:
        while True:
            in_use = {self._runtime.log(allocation) for allocation in self._occupied()}
            folder = self._runtime.log("any").parent
            await asyncio.to_thread(discard_old_logs, folder, self._settings.log_keep_s, in_use)
            await asyncio.sleep(HOUSEKEEPING_S)

    # between the keepers

    def _occupied(self) -> set[str]:
        return self.compute.occupied()

    def _network_changed(self) -> None:
        self.compute.hint.set()
        self._report_hint.set()

    def _compute_changed(self) -> None:
        self.network.hint.set()
        self._report_hint.set()
