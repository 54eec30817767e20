"""The last that agents told of energy, of each of their starts, until it is written down. In memory only: their
counters go on, so a manager that starts again misses nothing that they still tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ces_common.messages.energy import MOST_WATTS, EnergyReport
from ces_common.messages.reports import Heartbeat

MOST_STARTS: Final = 4
"""Of one node's agent that wait to be written down; and that are remembered after that, when others came."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent has told since its start ``boot``."""

    boot: str
    report: EnergyReport


class EnergyBook:
    def __init__(self) -> None:
        self._told: dict[str, tuple[Told, ...]] = {}  # node -> what it told, the last start at the end
        self._written: dict[str, Told] = {}  # node -> what of that is written down
        self._past: dict[str, tuple[str, ...]] = {}  # node -> starts that others came after, which are written down

    def heard(self, beat: Heartbeat) -> None:
        if beat.energy is None or "\0" in beat.boot:  # which Postgres refuses
            return
        told, kept = Told(beat.boot, beat.energy), self._told.get(beat.node, ())
        if kept and kept[-1].boot == told.boot:
            if told.report.total >= kept[-1].report.total:  # else it was overtaken
                self._told[beat.node] = (*kept[:-1], told)
        elif all(each.boot != told.boot for each in kept) and told.boot not in self._past.get(beat.node, ()):
            self._told[beat.node] = (*kept, told)[-MOST_STARTS:]

    def waiting(self) -> dict[str, tuple[Told, ...]]:
        """Node -> what is not written down yet."""
        return {node: told for node, told in self._told.items() if told[-1] is not self._written.get(node)}

    def changed(self, node: str) -> set[str]:
        """Allocations of which the node has told something that is not written down."""
        written, found = self._written.get(node), set[str]()
        for each in self._told.get(node, ()):
            before: Mapping[str, int] = written.report.allocations if written and written.boot == each.boot else {}
            found.update(name for name, part in each.report.allocations.items() if part != before.get(name))
        return found

    def wrote(self, node: str, told: Sequence[Told]) -> None:
        """All this is written down."""
        if node not in self._told:  # it was forgotten meanwhile
            return
        self._written[node] = told[-1]
        done = tuple(each.boot for each in told[:-1])
        self._told[node] = tuple(each for each in self._told[node] if each.boot not in done)
        self._past[node] = (*self._past.get(node, ()), *done)[-MOST_STARTS:]

    def forget_node(self, node: str) -> None:
        self._told.pop(node, None)
        self._written.pop(node, None)
        self._past.pop(node, None)

    def keep(self, nodes: Collection[str]) -> None:
        """Forget all others."""
        for node in self._told.keys() - nodes:
            self.forget_node(node)

    def watts(self, node: str) -> float | None:
        """What it told that it uses now, where it knows."""
        told = self._told.get(node)
        watts = told[-1].report.watts if told else None
        return None if watts is None else min(watts, MOST_WATTS)
