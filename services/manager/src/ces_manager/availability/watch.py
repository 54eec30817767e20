"""Who was there and who was away, from one look to the next. Pure.

Seconds are those in which this manager could hear: what it missed itself is nobody's failure. Nor is what was planned:
a node that is cordoned, or drained, is not looked at, nor are the links that begin or end there. An agent that starts
again on a machine that ran on, within the lease, has not failed: its workers went on. A link is looked at while both of
its ends are heard, so that a node that is away counts once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ces_manager.availability.evidence import Evidence

Hop = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """``age_s``: since it was last heard. ``boot``, ``machine``: the start of its agent and the boot of its machine, as
    of then. ``planned``: an operator keeps new work from it."""

    age_s: float
    boot: str
    machine: str
    planned: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """As of the last look. ``silent_s``: a silence of which it is not known yet what it is; ``away``: it is a failure.
    ``boot``, ``machine``: when it was last heard."""

    boot: str
    machine: str
    silent_s: float = 0.0
    away: bool = False


class Watch:
    """``silent_after_s``: after which a node that is not heard counts as away; ``lease_s``: within which its workers go
    on."""

    def __init__(self, silent_after_s: float, lease_s: float) -> None:
        self._silent_after_s, self._lease_s = silent_after_s, lease_s
        self._known: dict[str, _Known] = {}
        self._seen: dict[str | Hop, Evidence] = {}
        self._looked: float | None = None

    def look(self, nodes: Mapping[str, NodeSeen], links: Mapping[Hop, bool], now: float) -> None:
        """``links``: those that are watched, and whether they are up. ``now``: seconds of hearing."""
        passed_s = 0.0 if self._looked is None else max(now - self._looked, 0.0)
        self._looked = now
        before, self._known = self._known, {}
        for name, seen in nodes.items():
            known = before.get(name)
            if not seen.planned:
                self._known[name] = self._begun(seen) if known is None else self._judged(name, known, seen, passed_s)
            elif known is not None and known.silent_s:  # of before
                self._add(name, 0.0, known.silent_s)
        heard = {name for name, seen in nodes.items() if not seen.planned and seen.age_s <= self._silent_after_s}
        for hop, up in links.items():
            if heard.issuperset(hop):
                self._add(hop, passed_s if up else 0.0, 0.0 if up else passed_s)

    def take(self) -> dict[str | Hop, Evidence]:
        """What was seen of nodes and links since this was last called."""
        seen, self._seen = self._seen, {}
        return seen

    def _begun(self, seen: NodeSeen) -> _Known:
        """At the first look, nothing is said of what was before."""
        return _Known(seen.boot, seen.machine, away=seen.age_s > self._silent_after_s)

    def _judged(self, name: str, known: _Known, seen: NodeSeen, passed_s: float) -> _Known:
        if seen.age_s <= self._silent_after_s:
            restarted = seen.boot != known.boot and seen.machine == known.machine != ""
            self._add(name, passed_s, 0.0 if restarted else known.silent_s)
            return _Known(seen.boot, seen.machine)
        if known.away:
            self._add(name, 0.0, passed_s)
            return known
        if not known.silent_s:  # it begins now, and was taken for being there until the last look
            self._add(name, -max(seen.age_s - passed_s, 0.0), 0.0)
        silent_s = known.silent_s + passed_s if known.silent_s else seen.age_s
        if silent_s <= self._lease_s:
            return replace(known, silent_s=silent_s)
        self._add(name, 0.0, silent_s)
        return replace(known, silent_s=0.0, away=True)

    def _add(self, whose: str | Hop, up_s: float, down_s: float) -> None:
        before = self._seen.get(whose, Evidence())
        self._seen[whose] = Evidence(max(before.up_s + up_s, 0.0), before.down_s + down_s)
