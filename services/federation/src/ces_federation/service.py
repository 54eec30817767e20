"""The federation service: tells other regions of this one, hears of them, and answers its manager."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network

import structlog
from prometheus_client import Gauge

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message, RemoteError
from ces_common.messages.regions import AwayLogQuery, Decision, RegionList, Summary, Totals
from ces_common.messages.split import BorderSetups, NearEnd, NearEnds
from ces_common.service import Hint
from ces_federation.asker import Asker
from ces_federation.board import Board
from ces_federation.border_links import gateway_of, setups
from ces_federation.chooser import chooser
from ces_federation.home import Home
from ces_federation.jobs_away import JobsAway
from ces_federation.manager_port import Manager
from ces_federation.owner import Owner
from ces_federation.peers import Peer
from ces_federation.seals import key_of
from ces_federation.settings import FederationSettings
from ces_federation.split_home import SplitHome
from ces_federation.split_owner import SplitOwner
from ces_federation.wire import Wire

log = structlog.get_logger()
SERVICE = "federation"
AGE = Gauge("ces_region_summary_age_seconds", "Age of what a region told last; -1 where it told nothing", ["region"])
EVERY_S = 2.0
LARGEST_QUESTION = 4096  # bytes
AT_LEAST_S = 0.25  # between two summaries, however much changes
ASK_S = 2.0
EVENTS = [subjects.events(aggregate) for aggregate in ("job", "plan", "allocation", "node")]
NO_ANSWER = "the region in which the job runs does not answer"
MANAGER_TOTALS = subjects.rpc("manager", "region-totals")


class Federation:
    """``bus``: of this region's cluster; ``wire_bus``: the account that reaches the others. ``clock``: steady; ``now``:
    seconds since the Unix epoch."""

    def __init__(
        self,
        bus: Bus,
        wire_bus: Bus,
        settings: FederationSettings,
        peers: Mapping[str, Peer],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._bus, self._wire_bus, self._settings, self._peers, self._clock = bus, wire_bus, settings, peers, clock
        keys = {name: key_of(peer.token.get_secret_value()) for name, peer in peers.items()}
        self.wire = Wire(wire_bus, settings.region, keys, now)
        self.board = Board(settings.region, settings.address_block, peers)
        manager = Manager(bus)
        self.asker = Asker(self.wire, peers, clock)
        self.jobs_away = JobsAway(manager, self.asker, self.board, clock)
        self._manager = manager
        self._owner = Owner(manager, peers, clock)
        self._split_owner = SplitOwner(settings.region, manager, self._owner, clock, self._block_of)
        self.split_home = SplitHome(
            settings.region, manager, self.asker, self.board, self._split_owner, lambda: self._own, clock
        )
        splits = self.split_home
        chooses = chooser(settings.region_choice, settings.region_policy)
        self.home = Home(
            manager, self.asker, self.board, self.jobs_away, clock, splits.consider, lambda: splits.trying, chooses
        )
        self._hint = Hint()
        self._own: Totals | None = None
        self._near: dict[str, NearEnd] = {}  # this region's ends of border links, by the other region
        self._borders_are_told = False

    def missing(self) -> str | None:
        """What keeps it from working; None when ready. Other regions may be away."""
        if not (self._bus.connected and self._wire_bus.connected):
            return "the bus"
        return None if self._own is not None else "the manager's totals"

    async def run(self) -> None:
        await self.begin()
        await asyncio.gather(self._tell_repeatedly(), self.home.run(), self.jobs_away.run(), self.split_home.run())

    async def begin(self) -> None:
        """Begin to hear and to answer."""
        self.wire.on("summary", self._take_summary)
        self._owner.serve(self.wire)
        self._split_owner.serve(self.wire)
        await self.wire.start()
        await self._bus.serve(subjects.rpc(SERVICE, "regions"), self._tell_regions, largest=0)
        await self._bus.serve(subjects.rpc(SERVICE, "logs"), self._tell_logs, largest=LARGEST_QUESTION)
        await self._bus.serve(subjects.rpc(SERVICE, "flows"), self._tell_flows, largest=LARGEST_QUESTION)
        for pattern in EVENTS:
            await self._bus.subscribe(pattern, self._changed)

    async def close(self) -> None:
        await self.home.close()
        await self.jobs_away.close()
        await self.split_home.close()
        await self.wire.close()

    def _block_of(self, region: str) -> IPv4Network | None:
        if region == self._settings.region:
            return self._settings.address_block
        summary = self.board.usable(self._clock()).get(region)
        return None if summary is None else summary.block

    async def _changed(self, _: Message) -> None:
        self._hint.set()

    async def _tell_repeatedly(self) -> None:
        while True:
            await self.tell()
            await asyncio.sleep(AT_LEAST_S)
            await self._hint.wait(EVERY_S - AT_LEAST_S)

    async def tell(self) -> None:
        """Tell every region of this one. A manager that is away is not told of: the others see the summary grow old."""
        made_at = self._now()
        try:
            self._own = Totals.model_validate_json(await self._bus.request(MANAGER_TOTALS, timeout_s=ASK_S))
        except (BusError, ValueError) as error:
            log.warning("the manager does not tell of the cluster", error=str(error))
            return
        for name, peer in self._peers.items():
            age = self.board.age_s(name, self._clock())
            AGE.labels(name).set(-1 if age is None else age)
            try:
                await self.wire.tell(name, "summary", self._summary(self._own, name, peer, made_at).encode())
            except BusError as error:
                log.warning("a region cannot be told", region=name, error=str(error))
        await self._set_up_borders()

    async def _set_up_borders(self) -> None:
        """Have the manager's books say what the border links are, by what the other regions tell of their ends."""
        wanted = setups(self._peers, self.board.usable(self._clock()))
        if not wanted and self._borders_are_told:  # one that was taken from the file since the last start goes, too
            return
        try:
            found = await self._manager.ask("region-borders", NearEnds, BorderSetups(items=wanted))
            self._near, self._borders_are_told = {end.region: end for end in found.items}, True
        except BusError as error:
            log.warning("the border links are not set up", error=str(error)[:200])

    def _summary(self, totals: Totals, name: str, peer: Peer, made_at: float) -> Summary:
        return Summary(
            **totals.model_dump(),
            region=self._settings.region,
            block=self._settings.address_block,
            accepts=peer.accept,
            made_at=made_at,
            gateway=gateway_of(name, peer, self._near),
        )

    async def _take_summary(self, region: str, data: bytes) -> bytes:
        self.board.note(region, Summary.model_validate_json(data), self._clock())
        return b""

    async def _tell_logs(self, message: Message) -> bytes:
        answer = await self.jobs_away.logs(AwayLogQuery.model_validate_json(message.data))
        if answer is None:
            raise RemoteError("silent", NO_ANSWER)
        return answer.encode()

    async def _tell_flows(self, message: Message) -> bytes:
        answer = await self.jobs_away.flows(Decision.model_validate_json(message.data))
        if answer is None:
            raise RemoteError("silent", NO_ANSWER)
        return answer.encode()

    async def _tell_regions(self, _: Message) -> bytes:
        return RegionList(items=self.board.views(self._own, self._clock())).encode()
