"""The data plane in its own network namespace: devices, routes and traffic classes, kept as wanted."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import structlog

from ces_common.faults import fault_point
from ces_common.messages.queries import LinkProbe, LinkProbed
from ces_common.messages.reports import FlowUsage, LinkStatus, LinkUsage
from ces_common.messages.wanted import NetworkWanted
from ces_common.naming import DATA_PLANE
from ces_edge_agent.dataplane.derive import NODE, derive
from ces_edge_agent.dataplane.diff import Step, diff, lowers, shortens
from ces_edge_agent.dataplane.drain import Draining
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.kernel import Kernel
from ces_edge_agent.dataplane.link_probe import LinkProber
from ces_edge_agent.dataplane.link_watch import LinkWatch
from ces_edge_agent.dataplane.listening import open_listener
from ces_edge_agent.dataplane.meter import Meters
from ces_edge_agent.dataplane.namespace import OWN
from ces_edge_agent.dataplane.objects import Key
from ces_edge_agent.dataplane.order import carry_out

log = structlog.get_logger()
SAMPLE_S = 0.5
PROMPT_S = 0.05  # a reading that took longer does not say well enough when it was true
READINGS = 3  # at most, for a prompt one
Result = TypeVar("Result")


class TcNetwork:
    """``namespace`` holds the data plane and is created unless it is there. ``underlay``: the namespace that VXLAN
    packets leave from, the agent's own by default. Needs CAP_NET_ADMIN and CAP_SYS_ADMIN."""

    def __init__(
        self,
        node: str,
        namespace: str = DATA_PLANE,
        underlay: Path = OWN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.node = node
        self._kernel = Kernel(namespace, underlay)
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None  # one: netlink sockets are used by the thread that made them
        self._sampler: asyncio.Task[None] | None = None
        self._meters = Meters()
        self._shares: dict[Key, set[str]] = {}  # whose an object is, by the orders of this run; unknown after a restart
        self._watch = LinkWatch(self._kernel.shown, self._run, clock)
        self.link_news = self._watch.news
        self._prober = LinkProber(self._kernel, self._run, self._watch)

    async def open(self) -> None:
        """Raises DataPlaneError."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ces-dataplane")
        await self._run(self._kernel.open)
        await self._follow()
        self._watch.open()
        if self._sampler is None:
            self._sampler = asyncio.create_task(self._sample_for_ever())

    async def close(self) -> None:
        if self._sampler is not None:
            self._sampler.cancel()
            await asyncio.gather(self._sampler, return_exceptions=True)
            self._sampler = None
        await self._watch.close()
        if self._thread is not None:
            await self._run(self._kernel.close)
            self._thread.shutdown()
            self._thread = None

    async def apply(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> dict[str, str]:
        failed = await self._run(lambda: self._apply(wanted, holders))
        await self._follow()
        self._watch.want(wanted.router, wanted.links)
        return failed

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
    def ground(self) -> Hashable:
        return self._kernel.identity

    async def listen(self, address: str, port: int) -> socket.socket:
        return await self._run(lambda: open_listener(address, port, self._kernel.path))

    async def remove(self) -> None:
        """Raises DataPlaneError."""
        self._meters = Meters()
        self._watch.want("", [])
        self._watch.let_go()
        await self._run(self._kernel.remove)

    async def _follow(self) -> None:
        """Watch the links of the namespace that there is now: it may have been made anew."""
        try:
            if self._kernel.identity is not None:
                await self._watch.follow(self._kernel.path, self._kernel.identity)
        except DataPlaneError as error:
            log.warning("links are not watched", error=str(error))

    async def _run(self, function: Callable[[], Result]) -> Result:
        if self._thread is None:
            raise DataPlaneError("the data plane is not open")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _apply(self, wanted: NetworkWanted, holders: Mapping[str, Path | None]) -> dict[str, str]:
        try:
            self._kernel.open()
            snapshot = self._kernel.look(wanted, holders)
        except DataPlaneError as error:
            return {NODE: str(error)}
        derived = derive(wanted, snapshot.facts)
        steps = diff(derived.items.values(), snapshot.objects)
        present = {item.key for item in snapshot.objects}
        self._shares = {key: who for key, who in self._shares.items() if key in present} | derived.shares
        site = self._kernel.site(snapshot)
        draining = Draining(self._kernel.class_counters)
        half = steps[len(steps) // 2] if len(steps) > 1 else None

        def perform(step: Step) -> None:
            if step is half:
                fault_point("network-half")
            if lowered := lowers(step):
                draining.wait(lowered.device, lowered.minor)
            self._kernel.perform(step, site)
            if shortened := shortens(step):
                draining.shortened(shortened)

        failed = carry_out(steps, self._shares, derived, perform)
        if steps:
            log.info("data plane changed", generation=wanted.generation, steps=len(steps))
        self._meters.watch(wanted, failed.keys())
        return failed

    async def _sample_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_S)
            try:
                await self._run(lambda: self._sample(self._meters.source_devices))
            except DataPlaneError as error:
                log.warning("the data plane cannot be measured", error=str(error))

    def _sample(self, devices: set[str]) -> None:
        """Raises DataPlaneError."""
        for device in devices:
            for _ in range(READINGS):
                before = self._clock()
                classes = self._kernel.class_counters(device)
                after = self._clock()
                if after - before <= PROMPT_S:
                    break
            # The counters are from some moment in between, which a busy machine makes long: the middle is least wrong.
            self._meters.see_classes((before + after) / 2, device, classes)

    def _sample_links(self) -> None:
        """Raises DataPlaneError."""
        now = self._clock()
        for device, counters in self._kernel.link_counters(self._meters.links).items():
            self._meters.see_link(now, device, counters)
