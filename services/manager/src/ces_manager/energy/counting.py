"""How what agents tell of energy adds up: their counters grow from zero at each start, and a start that ended
is not counted again: the book takes nothing of it any more, as far as it remembers. Pure; in microjoules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ces_common.messages.energy import MOST_WATTS, Source
from ces_manager.energy_book import Told

MOST: Final = 2**63 - 1
"""What a column holds: at MOST_WATTS, fourteen years."""
SLACK_S: Final = 10.0
"""By which clocks may differ where it is judged whether a node can have used so much."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Sums by how they are known. What was told since the start ``boot`` is in them as far as ``counted``."""

    boot: str = ""
    counted: int = 0
    measured: int = 0
    modelled: int = 0

    @property
    def total(self) -> int:
        return self.measured + self.modelled

    def on(self, boot: str, source: Source, told: int, most: int) -> Counted:
        """With ``told`` since the start ``boot``; by no more than ``most``. Of another start all of it is new. A
        counter that is lower than it was adds nothing."""
        before = self.counted if boot == self.boot else 0
        added = min(max(told - before, 0), most)
        here = replace(self, boot=boot, counted=max(told, before))
        return replace(here, **{source: min(getattr(self, source) + added, MOST)})


@dataclass(frozen=True, slots=True)
class NodeCount:
    """``jobs``: what of the ``node``'s was attributed to allocations; ``allocations``: of those that were told of."""

    node: Counted = Counted()
    jobs_measured: int = 0
    jobs_modelled: int = 0
    allocations: Mapping[str, Counted] = field(default_factory=dict)


def count(before: NodeCount, told: Sequence[Told], own: Iterable[str], since_s: float) -> NodeCount:
    """With all that its agent has ``told``, start by start; those before the one that was counted last are counted,
    by another manager. ``own``: the allocations that are the node's. ``since_s``:
    seconds since it was last counted, in which it can have used so much at most. What its allocations used is part of
    what it used, so they get no more than that."""
    most, known, node = round((max(since_s, 0.0) + SLACK_S) * MOST_WATTS * 1e6), set(own), before.node
    allocations, jobs = dict(before.allocations), {"measured": before.jobs_measured, "modelled": before.jobs_modelled}
    starts = [each.boot for each in told]
    for each in told[starts.index(node.boot) if node.boot in starts else 0 :]:
        source, former = each.report.source, node.total
        node = node.on(each.boot, source, each.report.total, most)
        left = node.total - former
        most -= left
        for name, part in each.report.allocations.items():
            if name not in known:
                continue
            was = allocations.get(name, Counted())
            allocations[name] = was.on(each.boot, source, part, left)
            added = allocations[name].total - was.total
            left -= added
            jobs[source] = min(jobs[source] + added, MOST)
    return NodeCount(node, jobs["measured"], jobs["modelled"], allocations)
