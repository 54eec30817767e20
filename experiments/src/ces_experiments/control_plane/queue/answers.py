"""What became of proposals, read off the event log: which were never answered, and whether two sets of jobs were told
at one time to make room for one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]
NAMES = ("plan", "revision", "preemption")  # by which proposals are known, and answers name them


@dataclass(frozen=True, slots=True)
class Proposal:
    """``kind``: one of NAMES."""

    kind: str
    id: str
    job: str = ""


def proposal_of(event: Event) -> Proposal:
    """What ``plan.proposed`` and its like say."""
    data, kind = event["data"], event["type"].split(".")[2]
    return Proposal(kind, data[kind], data.get("job", ""))


def unanswered(proposals: Collection[Proposal], events: Iterable[Event]) -> list[str]:
    """The proposals that were neither committed nor rejected."""
    answered: set[str] = set()
    for event in events:
        if event["type"].endswith((".committed", ".rejected", ".revised")):
            answered.update(event["data"][name] for name in NAMES if name in event["data"])
    return sorted(each.id for each in proposals if each.id not in answered)


@dataclass
class VictimSets:
    """``sets``: how many were told to go, with ``victims`` jobs in all. ``most``: of one job's at one time."""

    sets: int = 0
    victims: int = 0
    most: int = 0
    _leaving: dict[str, list[set[str]]] = field(default_factory=lambda: defaultdict(list))  # job -> sets for it

    def read(self, event: Event) -> None:
        """The next event of the log."""
        data = event["data"]
        if event["type"] == "ces.v1.preemption.committed":
            self.sets += 1
            self.victims += len(data["victims"])
            # who is suspended has left
            sets = self._leaving[data["job"]]
            sets.append({victim["job"] for victim in data["victims"] if victim["how"] == "stop"})
            self.most = max(self.most, sum(bool(leaving) for leaving in sets), 1)
        elif event["type"].startswith("ces.v1.job.") and not event["type"].endswith((".waiting", ".rescheduling")):
            for sets in self._leaving.values():
                for leaving in sets:
                    leaving.discard(data["job"])


def victim_sets(events: Iterable[Event]) -> VictimSets:
    found = VictimSets()
    for event in events:
        found.read(event)
    return found
