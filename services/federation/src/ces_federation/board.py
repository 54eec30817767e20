"""What the other regions told last, and which of it may be acted on. Pure but for what it is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from ces_common.hosts import WORKERS
from ces_common.messages.regions import PROTOCOL, RegionView, Summary, Totals

OLD_S = 10.0  # after which nothing new is placed by a summary
PRIVATE = [IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
WIDEST = WORKERS.prefixlen  # of a block, in bits


@dataclass(frozen=True, slots=True)
class Heard:
    """``at``: when, in steady seconds of this process."""

    summary: Summary
    at: float


class Board:
    """``region`` and ``block`` are this region's own; ``peers`` the others' names."""

    def __init__(self, region: str, block: IPv4Network, peers: Iterable[str]) -> None:
        self._region, self._block = region, block
        self._heard: dict[str, Heard | None] = dict.fromkeys(sorted(peers))

    def note(self, region: str, summary: Summary, now: float) -> None:
        """Raises ValueError for a summary in another's name."""
        if summary.region != region or region not in self._heard:
            raise ValueError(f"region {region} tells a summary of {summary.region}")
        self._heard[region] = Heard(summary, now)

    def usable(self, now: float) -> dict[str, Summary]:
        """The regions where something new may be placed."""
        return {
            name: heard.summary
            for name, heard in self._heard.items()
            if heard is not None and now - heard.at <= OLD_S and self._objection(name) is None
        }

    def age_s(self, region: str, now: float) -> float | None:
        heard = self._heard.get(region)
        return None if heard is None else now - heard.at

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
            age = now - heard.at
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
        told = {name: heard.summary.block for name, heard in self._heard.items() if heard and now - heard.at <= OLD_S}
        others = {self._region: self._block, **told}
        return [name for name, other in others.items() if name != region and other.overlaps(block)]
