"""The data plane in a network namespace of its own: devices, routes and traffic classes, kept as desired."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import structlog

from ces_common.fault_points import fault_point
from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.reports import FlowUsage, LinkKeys, LinkStatus, LinkUsage
from ces_common.names import DATA_PLANE
from ces_edge_agent.dataplane.links.probe import LinkProber
from ces_edge_agent.dataplane.links.watch import LinkWatch
from ces_edge_agent.dataplane.listener import open_connection, open_listener
from ces_edge_agent.dataplane.meters import Meters
from ces_edge_agent.dataplane.netlink.kernel import Kernel
from ces_edge_agent.dataplane.netlink.namespace import OWN
from ces_edge_agent.dataplane.plan.derivation import NODE, derive
from ces_edge_agent.dataplane.plan.diff import Step, diff, lowers, shortens
from ces_edge_agent.dataplane.plan.objects import Key
from ces_edge_agent.dataplane.plan.rollout import carry_out
from ces_edge_agent.dataplane.queue_drain import QueueDrain
from ces_edge_agent.dataplane.wireguard.pace import LOOK_S
from ces_edge_agent.dataplane.wireguard.tunnels import EXCUSE_S, Tunnels, TunnelSettings, encrypted_links
from ces_edge_agent.ports import DataPlaneError, SandboxNamespaces

log = structlog.get_logger()
SAMPLE_S = 0.5
PROMPT_S = 0.05  # a sample that took longer is too uncertain in time
TRIES = 3  # for a prompt sample
Result = TypeVar("Result")


class TcNetwork:
    """``namespace`` holds the data plane, and is created if necessary. ``underlay``: the namespace from which VXLAN
    packets are sent, by default the agent's own. ``tunnels``: how links are encrypted; without, none can be. Needs
    CAP_NET_ADMIN and CAP_SYS_ADMIN."""

    def __init__(
        self,
        node: str,
        namespace: str = DATA_PLANE,
        underlay: Path = OWN,
        clock: Callable[[], float] = time.monotonic,
        tunnels: TunnelSettings | None = None,
    ) -> None:
        self.node = node
        self._kernel = Kernel(namespace, underlay)
        self._tunnels = Tunnels(tunnels, self._kernel.inside, underlay) if tunnels is not None else None
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None  # one thread: it uses the netlink sockets it opened
        self._tasks: list[asyncio.Task[None]] = []
        self._meters = Meters()
        self._shares: dict[Key, set[str]] = {}  # object -> its attempts, by this run's documents
        self._watch = LinkWatch(self._kernel.shown, self._run, clock)
        self.links_changed = self._watch.changed
        self._prober = LinkProber(self._kernel, self._run, self._watch)

    async def open(self) -> None:
        """Raises DataPlaneError."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ces-dataplane")
        await self._run(self._open)
        await self._watch_links()
        self._watch.open()
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._sample_repeatedly())]
            if self._tunnels is not None:
                self._tasks.append(asyncio.create_task(self._tend(self._tunnels)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self._watch.close()
        if self._thread is not None:
            await self._run(self._kernel.close)
            self._thread.shutdown()
            self._thread = None

    async def apply(self, desired: DesiredNetwork, sandboxes: SandboxNamespaces) -> dict[str, str]:
        failed, faults = await self._run(lambda: self._apply(desired, sandboxes))
        await self._watch_links()
        self._watch.set_links(desired.router, desired.links, faults)
        return failed

    async def encryption(self) -> LinkKeys | None:
        return self._tunnels.told if self._tunnels is not None else None

    async def rotate_key(self) -> None:
        if self._tunnels is None:
            raise DataPlaneError("this agent encrypts no links")
        self._tunnels.rotate()

    async def links(self) -> list[LinkStatus]:
        self._watch.check()
        return self._watch.statuses()

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        def measure() -> tuple[list[LinkUsage], list[FlowUsage]]:
            self._sample(self._meters.flow_devices)
            self._sample_links()
            return self._meters.report()

        links, flows = await self._run(measure)
        trips = self._watch.round_trips()
        return [link.model_copy(update={"round_trip_s": trips.get(link.peer)}) for link in links], flows

    async def probe(self, query: LinkProbe) -> LinkProbed:
        return await self._prober.probe(query)

    @property
    def identity(self) -> Hashable:
        return self._kernel.identity

    async def listen(self, address: str, port: int) -> socket.socket:
        return await self._run(lambda: open_listener(address, port, self._kernel.path))

    async def dial(self, address: str, port: int, source: str, timeout_s: float) -> socket.socket:
        return await asyncio.to_thread(open_connection, address, port, source, timeout_s, self._kernel.path)

    async def remove(self) -> None:
        """Raises DataPlaneError."""
        self._meters = Meters()
        self._watch.set_links("", [])
        self._watch.release()
        await self._run(self._remove)

    async def _watch_links(self) -> None:
        """Watch the links of the present namespace, which may have been recreated."""
        try:
            if self._kernel.identity is not None:
                await self._watch.follow(self._kernel.path, self._kernel.identity)
        except DataPlaneError as error:
            log.warning("links are not watched", error=str(error))

    async def _run(self, function: Callable[[], Result]) -> Result:
        if self._thread is None:
            raise DataPlaneError("the data plane is not open")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _open(self) -> None:
        """Raises DataPlaneError."""
        self._kernel.open()
        if self._tunnels is not None:
            self._tunnels.open(self._kernel.path)

    def _remove(self) -> None:
        """Raises DataPlaneError."""
        self._kernel.remove()
        if self._tunnels is not None:
            self._tunnels.prune(DesiredNetwork(node=self.node, generation=0))

    def _apply(self, desired: DesiredNetwork, sandboxes: SandboxNamespaces) -> tuple[dict[str, str], Mapping[str, str]]:
        """Also neighbour -> why the link to it cannot be encrypted."""
        faults: dict[str, str] = {}
        try:
            self._open()
            faults = self._encrypt(desired)
            snapshot = self._kernel.snapshot(desired, sandboxes)
        except DataPlaneError as error:
            return {NODE: str(error)}, faults
        derived = derive(desired, replace(snapshot.facts, faults=faults))
        steps = diff(derived.items.values(), snapshot.objects)
        present = {item.key for item in snapshot.objects}
        self._shares = {key: who for key, who in self._shares.items() if key in present} | derived.shares
        site = self._kernel.site(snapshot)
        drain = QueueDrain(self._kernel.class_counters)
        half = steps[len(steps) // 2] if len(steps) > 1 else None

        def perform(step: Step) -> None:
            if step is half:
                fault_point("network-half")
            if lowered := lowers(step):
                drain.wait(lowered.device, lowered.minor)
            self._kernel.perform(step, site)
            if shortened := shortens(step):
                drain.shortened(shortened)

        failed = carry_out(steps, self._shares, derived, perform)
        if steps:
            log.info("data plane changed", generation=desired.generation, steps=len(steps))
        self._meters.watch(desired, failed.keys())
        if self._tunnels is not None:
            self._tunnels.prune(desired)
        return failed, faults

    def _encrypt(self, desired: DesiredNetwork) -> dict[str, str]:
        """Raises DataPlaneError."""
        links = encrypted_links(desired)
        if self._tunnels is None:
            return {link.peer: "this agent encrypts no links" for link in links}
        hosts = {link.wireguard.address for link in links if link.wireguard is not None}
        return self._tunnels.apply(desired, self._kernel.underlay_mtu(hosts))

    async def _tend(self, tunnels: Tunnels) -> None:
        """Look after encrypted links, and not call them down while keys are replaced, which loses packets for a
        moment."""
        told = tunnels.told
        while True:
            await asyncio.sleep(tunnels.look_s or LOOK_S)
            self._watch.be_lenient(tunnels.going_over, EXCUSE_S)
            if await self._run(tunnels.look):
                for link in self._watch.encrypted:
                    self._watch.excuse(link, EXCUSE_S)
            if tunnels.told != told:
                told = tunnels.told
                self.links_changed.set()

    async def _sample_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_S)
            try:
                await self._run(lambda: self._sample(self._meters.source_devices))
            except DataPlaneError as error:
                log.warning("the data plane cannot be measured", error=str(error))

    def _sample(self, devices: set[str]) -> None:
        """Raises DataPlaneError."""
        for device in devices:
            for _ in range(TRIES):
                before = self._clock()
                classes = self._kernel.class_counters(device)
                after = self._clock()
                if after - before <= PROMPT_S:
                    break
            # The counters are from some moment in between, which may be long on a busy machine: take the middle.
            self._meters.sample_classes((before + after) / 2, device, classes)

    def _sample_links(self) -> None:
        """Raises DataPlaneError."""
        now = self._clock()
        for device, counters in self._kernel.link_counters(self._meters.links).items():
            self._meters.sample_link(now, device, counters)
