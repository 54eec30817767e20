"""Watches links: the kernel's state of their devices, and whether the neighbours answer probes over them."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import structlog

from ces_common.messages.desired import LinkDevice
from ces_common.messages.reports import LinkStatus
from ces_common.service import Hint
from ces_edge_agent.dataplane.links.health import PROBE_EVERY_S, Health
from ces_edge_agent.dataplane.links.pinger import Pinger
from ces_edge_agent.dataplane.netlink.namespace import in_namespace
from ces_edge_agent.dataplane.netlink.observed import Shown
from ces_edge_agent.ports import DataPlaneError

log = structlog.get_logger()
ROUND_TRIPS = 15  # kept for each link
RTMGRP_LINK = 1
READ_SIZE = 65536
OBSERVE_S = 5.0  # at least; the kernel notifies of changes
NONE: Mapping[str, str] = {}


@dataclass
class _WatchedLink:
    link: LinkDevice
    health: Health
    index: int = 0
    unfit: str | None = None  # why it cannot be encrypted, as it must be
    round_trips: deque[float] = field(default_factory=lambda: deque(maxlen=ROUND_TRIPS))


class LinkWatch:
    """``read_devices``: device -> state, without devices that do not exist. ``in_thread`` runs blocking calls.
    ``clock`` never goes back. ``changed`` is set when a link's status has changed."""

    def __init__(
        self,
        read_devices: Callable[[Collection[str]], dict[str, Shown]],
        in_thread: Callable[[Callable[[], None]], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self._read_devices, self._in_thread, self._clock = read_devices, in_thread, clock
        self._links: dict[str, _WatchedLink] = {}  # neighbour's address -> link
        self._router = ""
        self._namespace: tuple[int, int] | None = None
        self._monitor: socket.socket | None = None
        self._pinger: Pinger | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._devices_changed = Hint()
        self.changed = Hint()

    def open(self) -> None:
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._observe_repeatedly()),
                asyncio.create_task(self._probe_repeatedly()),
            ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.release()

    async def follow(self, path: Path, identity: tuple[int, int]) -> None:
        """Watch this namespace instead of the one before. Raises DataPlaneError."""
        if identity == self._namespace:
            return
        self.release()

        def enter() -> None:
            self._pinger = Pinger(path)
            self._monitor = open_monitor(path)

        await self._in_thread(enter)
        assert self._monitor is not None
        start_listening(self._monitor, self._devices_changed.set)
        self._namespace = identity

    def set_links(self, router: str, links: Sequence[LinkDevice], unfit: Mapping[str, str] = NONE) -> None:
        """Watch these links from now on; the health of links watched already is kept. ``unfit``: neighbour -> why the
        link to it cannot be encrypted, as it must be."""
        known = {(watched.link.peer, watched.link.device): watched for watched in self._links.values()}
        self._router = router
        self._links = {}
        for link in links:
            watched = known.get((link.peer, link.device))
            health = watched.health if watched else Health(link.peer, link.device)
            health.probed = bool(router and link.gateway and link.two_way)
            trips = watched.round_trips if watched else deque(maxlen=ROUND_TRIPS)
            index = watched.index if watched else 0
            self._links[link.gateway or link.peer] = _WatchedLink(link, health, index, unfit.get(link.peer), trips)
        self._devices_changed.set()

    @property
    def router(self) -> str:
        return self._router

    def link(self, peer: str) -> LinkDevice:
        """The link to a neighbour. Raises DataPlaneError if there is none."""
        for each in self._links.values():
            if each.link.peer == peer:
                return each.link
        raise DataPlaneError(f"no link to {peer}")

    @property
    def encrypted(self) -> list[str]:
        """The neighbours over encrypted links."""
        return [each.link.peer for each in self._links.values() if each.link.wireguard is not None]

    def excuse(self, peer: str, seconds: float) -> None:
        """Do not count missing answers for this long: the link is full on purpose."""
        for each in self._links.values():
            if each.link.peer == peer:
                each.health.excused_until = self._clock() + seconds

    def be_lenient(self, peers: Collection[str], seconds: float) -> None:
        """Not to call the links to these neighbours down before there was no answer for this long."""
        for each in self._links.values():
            each.health.lenient_s = seconds if each.link.peer in peers else 0.0

    def round_trips(self) -> dict[str, float]:
        """Neighbour -> median round trip in seconds of the last answers."""
        return {each.link.peer: median(each.round_trips) for each in self._links.values() if each.round_trips}

    def statuses(self) -> list[LinkStatus]:
        """The status of every link whose state is known."""
        return [status for each in self._links.values() if (status := each.health.status()) is not None]

    def check(self) -> None:
        """Raise the error that ended a background task, if any: stale states must not be reported as current."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def observe(self) -> None:
        """Read the state of the devices. Raises DataPlaneError."""
        shown: dict[str, Shown] = {}
        links = list(self._links.values())
        devices = [each.link.device for each in links]
        await self._in_thread(lambda: shown.update(self._read_devices(devices)))
        before = self.statuses()
        for each in links:
            now = shown.get(each.link.device)
            each.index = now.index if now else 0
            fault = now.fault if now else "is not there"
            if each.unfit is not None:
                fault = f"cannot be encrypted: {each.unfit}"
            each.health.observe(self._clock(), fault)
        self._notify(before)

    async def _observe_repeatedly(self) -> None:
        while True:
            await self._devices_changed.wait(OBSERVE_S)
            try:
                await self.observe()
            except DataPlaneError as error:
                log.warning("links cannot be observed", error=str(error))

    async def _probe_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(PROBE_EVERY_S)
            self._probe()

    def _probe(self) -> None:
        """Take in the answers, judge the links by them, and send the next probes."""
        if self._pinger is None:
            return
        now = self._clock()
        for answer in self._pinger.answers():
            watched = self._links.get(answer.address)
            if watched is not None and watched.index == answer.index:
                watched.health.answered(now, answer.sent)
                watched.round_trips.append(answer.round_trip_s)
        before = self.statuses()
        for each in self._links.values():
            each.health.tick(now)
            if each.health.can_probe:
                self._pinger.send(each.index, self._router, each.link.gateway, now)
        self._notify(before)

    def _notify(self, before: list[LinkStatus]) -> None:
        after = self.statuses()
        if after == before:
            return
        for status in after:
            if status not in before:
                log.info("link", peer=status.peer, state=status.state, reason=status.reason)
        self.changed.set()

    def release(self) -> None:
        """Close the sockets, which keep the namespace alive."""
        if self._monitor is not None:
            stop_listening(self._monitor)
        if self._pinger is not None:
            self._pinger.close()
        self._monitor, self._pinger, self._namespace = None, None, None


def open_monitor(path: Path) -> socket.socket:
    """A socket that becomes readable when a device of the namespace changes, from rtnetlink(7). Its notifications say
    that something happened, not what: the receiver reads the state itself, so a lost one costs nothing but time.
    Blocking. Raises DataPlaneError."""

    def make() -> socket.socket:
        opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        try:
            opened.bind((0, RTMGRP_LINK))
        except OSError:
            opened.close()
            raise
        return opened

    try:
        return in_namespace(path, make)
    except OSError as error:
        raise DataPlaneError(f"changes in network namespace {path} cannot be heard: {error.strerror}") from error


def start_listening(monitor: socket.socket, changed: Callable[[], None]) -> None:
    """Call ``changed`` in the running event loop for each burst of notifications, until ``stop_listening``."""

    def drain() -> None:
        try:
            while monitor.recv(READ_SIZE):
                pass
        except BlockingIOError:
            pass
        except OSError:  # ENOBUFS: more notifications than the socket holds, which also means a change
            pass
        changed()

    asyncio.get_running_loop().add_reader(monitor, drain)


def stop_listening(monitor: socket.socket) -> None:
    asyncio.get_running_loop().remove_reader(monitor)
    monitor.close()
