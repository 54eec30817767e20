"""What became of proposals, read off the event log: which were never answered, and whether two sets of jobs were told
at one time to make room for one. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]
NAMES = ("plan", "revision", "preemption")  # by which proposals are known, and answers name them
_MAKES_ROOM = re.compile(r"makes room for job (\S+), ")


@dataclass(frozen=True, slots=True)
class Proposal:
    """``kind``: one of NAMES. ``victims``: of a preemption, with their attempts."""

    kind: str
    id: str
    job: str = ""
    victims: frozenset[tuple[str, int]] = frozenset()


def proposal_of(event: Event) -> Proposal:
    """What ``plan.proposed`` and its like say."""
    data, kind = event["data"], event["type"].split(".")[2]
    victims = frozenset((victim["job"], victim["attempt"]) for victim in data.get("victims", ()))
    return Proposal(kind, data[kind], data.get("job", ""), victims)


def unanswered(proposals: Collection[Proposal], events: Iterable[Event]) -> list[str]:
    """The proposals that were neither committed nor rejected. A preemption is committed once its victims left."""
    answered: set[str] = set()
    left: set[tuple[str, int]] = set()
    for event in events:
        _, _, aggregate, kind = event["type"].split(".")
        data = event["data"]
        if kind in ("committed", "rejected", "revised"):
            answered.update(data[name] for name in NAMES if name in data)
        elif aggregate == "job" and _room_for(event) is not None:
            left.add((data["job"], data["attempt"]))
    return sorted(
        each.id for each in proposals if each.id not in answered and not (each.victims and each.victims <= left)
    )


@dataclass
class VictimSets:
    """``sets``: how many were told to go, with ``victims`` jobs in all. ``most``: of one job's at one time."""

    sets: int = 0
    victims: int = 0
    most: int = 0
    _leaving: dict[str, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(dict))

    def read(self, event: Event) -> None:
        """The next event of the log."""
        if not event["type"].startswith("ces.v1.job.") or event["type"].endswith(".waiting"):
            return
        victim, room_for, told = event["data"]["job"], _room_for(event), event["time"]
        for sets in self._leaving.values():
            for leaving in sets.values():
                leaving.discard(victim)
        if room_for is None:
            return
        self.victims += 1
        sets = self._leaving[room_for]
        if told not in sets:  # those that one transaction told to go are one set
            self.sets += 1
        if event["type"].endswith(".rescheduling"):
            sets.setdefault(told, set()).add(victim)
        else:
            sets.setdefault(told, set())
        self.most = max(self.most, sum(bool(leaving) for leaving in sets.values()), 1)


def victim_sets(events: Iterable[Event]) -> VictimSets:
    found = VictimSets()
    for event in events:
        found.read(event)
    return found


def _room_for(event: Event) -> str | None:
    """The name of the job for which the event's job was told to make room."""
    if not event["type"].endswith((".rescheduling", ".suspended")):
        return None
    found = _MAKES_ROOM.match(event["data"].get("reason") or "")
    return None if found is None else found[1]
