"""What the other regions told last, and which of it may be acted on. Pure but for what it is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from ces_common.hosts import WORKERS
from ces_common.messages.regions import PROTOCOL, RegionView, Summary, Totals
from ces_federation.choice import Need, names, shortfall

OLD_S = 10.0  # after which nothing new is placed by a summary
PRIVATE = [IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
WIDEST = WORKERS.prefixlen  # of a block, in bits


@dataclass(frozen=True, slots=True)
class Heard:
    """``made``: when, in steady seconds of this process, as far as that can be told."""

    summary: Summary
    made: float


class Delays:
    """How long the messages of one sender were under way, by the time of its own clock that they carry. Of two clocks
    only differences can be compared: the quickest message within ``KEPT_S`` seconds counts as one that took no time, so
    neither a clock that is wrong nor one that is put right spoils this for longer. Pure."""

    KEPT_S = 60.0

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # when heard, and how much later than sent; both grow

    def of(self, sent: float, now: float) -> float:
        """``sent``: by the sender's clock; ``now``: steady, here. In seconds, never less than 0."""
        later = now - sent
        while self._seen and self._seen[-1][1] >= later:
            self._seen.pop()
        self._seen.append((now, later))
        while self._seen[0][0] < now - self.KEPT_S:
            self._seen.popleft()
        return later - self._seen[0][1]


class Board:
    """``region`` and ``block`` are this region's own; ``peers`` the others' names."""

    def __init__(self, region: str, block: IPv4Network, peers: Iterable[str]) -> None:
        self._region, self._block = region, block
        self._heard: dict[str, Heard | None] = dict.fromkeys(sorted(peers))
        self._delays = {name: Delays() for name in self._heard}

    def note(self, region: str, summary: Summary, now: float) -> None:
        """Raises ValueError for a summary in another's name."""
        if summary.region != region or region not in self._heard:
            raise ValueError(f"region {region} tells a summary of {summary.region}")
        heard = Heard(summary, now - self._delays[region].of(summary.made_at, now))
        before = self._heard[region]
        if before is None or heard.made >= before.made:  # a late one says nothing new
            self._heard[region] = heard

    def usable(self, now: float) -> dict[str, Summary]:
        """The regions where something new may be placed."""
        return {
            name: heard.summary
            for name, heard in self._heard.items()
            if heard is not None and now - heard.made <= OLD_S and self._objection(name) is None
        }

    def age_s(self, region: str, now: float) -> float | None:
        heard = self._heard.get(region)
        return None if heard is None else now - heard.made

    def epochs(self) -> dict[str, str]:
        """Of the other regions' databases."""
        return {name: heard.summary.epoch for name, heard in self._heard.items() if heard is not None}

    def why_not(self, need: Need, now: float) -> dict[str, str]:
        """Of the regions in which a job may run, why some need not be asked."""
        found = {}
        for name in filter(lambda name: names(need, name), self._heard):
            heard, age_s = self._heard[name], self.age_s(name, now)
            if heard is None or age_s is None:
                found[name] = "it was not heard yet"
            elif age_s > OLD_S:
                found[name] = f"it was not heard for more than {OLD_S:g} s"
            elif why := self._objection(name) or shortfall(need, heard.summary):
                found[name] = why
        return found

    def _objection(self, region: str) -> str | None:
        """By what that region told of itself: no other's word counts, lest one switches off all the others."""
        heard = self._heard[region]
        if heard is None:
            return None
        if heard.summary.protocol != PROTOCOL:
            return f"it speaks version {heard.summary.protocol} of the regions' protocol, and this one {PROTOCOL}"
        block = heard.summary.block
        if block.prefixlen < WIDEST or not any(block.subnet_of(private) for private in PRIVATE):
            return f"its addresses {block} are no private block of /{WIDEST} at most: give it one (CES_ADDRESS_BLOCK)"
        if block.overlaps(self._block):
            return f"its addresses {block} overlap this region's {self._block}: give it another block"
        return None

    def views(self, own: Totals | None, now: float) -> list[RegionView]:
        """This region first. ``own``: its sums; None where they are not known yet."""
        found = [
            RegionView(
                name=self._region,
                state="here",
                age_s=None if own is None else 0.0,
                summary=own,
                block=self._block,
                overlaps=self._overlaps(self._region, self._block, now),
            )
        ]
        for name, heard in self._heard.items():
            if heard is None:
                found.append(RegionView(name=name, state="silent"))
                continue
            age = now - heard.made
            objection = self._objection(name) if age <= OLD_S else None  # what it said then may be mended since
            found.append(
                RegionView(
                    name=name,
                    state="refused" if objection else "old" if age > OLD_S else "ready",
                    age_s=round(age, 1),
                    summary=Totals.model_validate(heard.summary.model_dump()),
                    accepts=heard.summary.accepts,
                    remark=objection,
                    block=heard.summary.block,
                    overlaps=self._overlaps(name, heard.summary.block, now) if age <= OLD_S else [],
                )
            )
        return found

    def _overlaps(self, region: str, block: IPv4Network, now: float) -> list[str]:
        """The other regions whose blocks meet this one's, by what they told of late."""
        told = {name: heard.summary.block for name, heard in self._heard.items() if heard and now - heard.made <= OLD_S}
        others = {self._region: self._block, **told}
        return [name for name, other in others.items() if name != region and other.overlaps(block)]
