"""Keeping an eye on links: what the kernel says of their devices, and whether the neighbours answer over them."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import structlog

from ces_common.messages.reports import LinkStatus
from ces_common.messages.wanted import LinkDevice
from ces_common.service import Hint
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.link_health import PROBE_EVERY_S, Health
from ces_edge_agent.dataplane.monitor import hang_up, listen, open_monitor
from ces_edge_agent.dataplane.observe import Shown
from ces_edge_agent.dataplane.pinger import Pinger

log = structlog.get_logger()
ROUND_TRIPS = 15  # as many are remembered of each link
LOOK_EVERY_S = 5.0  # unasked; the kernel tells of changes


@dataclass
class _Watched:
    link: LinkDevice
    health: Health
    index: int = 0
    round_trips: deque[float] = field(default_factory=lambda: deque(maxlen=ROUND_TRIPS))


class LinkWatch:
    """``look``: devices by name as they are now, without those that are not there; run by ``in_thread``, like all else
    that blocks. ``clock`` never goes back."""

    def __init__(
        self,
        look: Callable[[Collection[str]], dict[str, Shown]],
        in_thread: Callable[[Callable[[], None]], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self._look, self._in_thread, self._clock = look, in_thread, clock
        self._links: dict[str, _Watched] = {}  # neighbour's address -> link
        self._router = ""
        self._namespace: tuple[int, int] | None = None
        self._monitor: socket.socket | None = None
        self._pinger: Pinger | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = Hint()
        self.news = Hint()

    def open(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._keep_looking()), asyncio.create_task(self._keep_asking())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.let_go()

    async def follow(self, path: Path, identity: tuple[int, int]) -> None:
        """Watch this namespace, which may have been made anew. Raises DataPlaneError."""
        if identity == self._namespace:
            return
        self.let_go()

        def enter() -> None:
            self._pinger = Pinger(path)
            self._monitor = open_monitor(path)

        await self._in_thread(enter)
        assert self._monitor is not None
        listen(self._monitor, self._changed.set)
        self._namespace = identity

    def want(self, router: str, links: Sequence[LinkDevice]) -> None:
        """Watch these links from now on; what is known of those watched already is kept."""
        known = {(watched.link.peer, watched.link.device): watched for watched in self._links.values()}
        self._router = router
        self._links = {}
        for link in links:
            watched = known.get((link.peer, link.device))
            health = watched.health if watched else Health(link.peer, link.device)
            health.probed = bool(router and link.gateway and link.two_way)
            trips = watched.round_trips if watched else deque(maxlen=ROUND_TRIPS)
            self._links[link.gateway or link.peer] = _Watched(link, health, watched.index if watched else 0, trips)
        self._changed.set()

    @property
    def router(self) -> str:
        return self._router

    def link(self, peer: str) -> LinkDevice:
        """Raises DataPlaneError where there is none."""
        for each in self._links.values():
            if each.link.peer == peer:
                return each.link
        raise DataPlaneError(f"no link to {peer}")

    def excuse(self, peer: str, seconds: float) -> None:
        """For so long it is no wonder that the neighbour does not answer: the link is full on purpose."""
        for each in self._links.values():
            if each.link.peer == peer:
                each.health.excused_until = self._clock() + seconds

    def round_trips(self) -> dict[str, float]:
        """Neighbour -> seconds, median of the last echoes."""
        return {each.link.peer: median(each.round_trips) for each in self._links.values() if each.round_trips}

    def statuses(self) -> list[LinkStatus]:
        """Of the links of which something is known."""
        return [status for each in self._links.values() if (status := each.health.status()) is not None]

    def check(self) -> None:
        """Raises what ended the watching: a state that nobody looks after any more must not pass for the present."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def look(self) -> None:
        """See how the devices are now. Raises DataPlaneError."""
        shown: dict[str, Shown] = {}
        links = list(self._links.values())
        devices = [each.link.device for each in links]
        await self._in_thread(lambda: shown.update(self._look(devices)))
        before = self.statuses()
        for each in links:
            now = shown.get(each.link.device)
            each.index = now.index if now else 0
            each.health.shows(self._clock(), now.fault if now else "is not there")
        self._compare(before)

    async def _keep_looking(self) -> None:
        while True:
            await self._changed.wait(LOOK_EVERY_S)
            try:
                await self.look()
            except DataPlaneError as error:
                log.warning("links cannot be looked at", error=str(error))

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(PROBE_EVERY_S)
            self._ask()

    def _ask(self) -> None:
        """Take in the answers, judge by them, ask again."""
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
            if each.health.askable:
                self._pinger.send(each.index, self._router, each.link.gateway, now)
        self._compare(before)

    def _compare(self, before: list[LinkStatus]) -> None:
        after = self.statuses()
        if after == before:
            return
        for status in after:
            if status not in before:
                log.info("link", peer=status.peer, state=status.state, reason=status.reason)
        self.news.set()

    def let_go(self) -> None:
        """Of the namespace, which open sockets keep alive."""
        if self._monitor is not None:
            hang_up(self._monitor)
        if self._pinger is not None:
            self._pinger.close()
        self._monitor, self._pinger, self._namespace = None, None, None
