"""Judges what ran when. It knows nothing of CES: neither its code nor its words beyond task, node and capacity.

What devices write in their journals is the truth here, by one clock that no device can read. Two runs that touch at one
instant do not overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import inf


@dataclass(eq=False)
class Run:
    """One life of one worker. ``task``: what must run at most once; ``start``: names what may be started once only, as
    an allocation's incarnation does; ``place``: what holds capacity on the node for it; ``amount``: what it may use of
    that at first; ``changes``: from when on it may use another amount."""

    node: str
    task: str
    place: str
    start: str
    amount: int
    began: float
    ended: float = inf
    changes: list[tuple[float, int]] = field(default_factory=list)

    @property
    def amounts(self) -> Iterable[tuple[float, float, int]]:
        """Since when, until when and how much it may use."""
        steps = [(self.began, self.amount), *self.changes, (self.ended, 0)]
        for (since, amount), (until, _) in pairwise(steps):
            if since < min(until, self.ended):
                yield since, min(until, self.ended), amount

    def __str__(self) -> str:
        return f"{self.start} of {self.task} on {self.node} [{self.began:.2f}, {self.ended:.2f})"


@dataclass(eq=False)
class Room:
    """Others were told to make room for a task's owner. ``made``, ``seen``: the states of the books that this led to,
    and that they were chosen from; ``victims``: owner -> the state in which it first held nothing."""

    owner: str
    attempt: int
    made: int
    seen: int
    victims: dict[str, float]


@dataclass
class Journal:
    """Everything that ever ran. ``freed``: place -> when it was given away; ``lent``: place -> from when until when
    others might use it. ``asked``: the proposals that were made, ``answers``: how often each was answered; ``rooms``:
    who had to make room for whom, in order."""

    runs: list[Run] = field(default_factory=list)
    freed: dict[str, float] = field(default_factory=dict)
    lent: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    rooms: list[Room] = field(default_factory=list)

    def began(self, now: float, node: str, task: str, place: str, start: str, amount: int) -> Run:
        run = Run(node, task, place, start, amount, now)
        self.runs.append(run)
        return run


def judge(journal: Journal, capacities: Mapping[str, int]) -> list[str]:
    """What is wrong, each in a sentence; empty where nothing is."""
    return [
        *_twice_at_a_time(journal.runs),
        *_started_again(journal.runs),
        *_after_it_was_freed(journal),
        *_overbooked(journal, capacities),
        *(f"answered {times} times: {each}" for each, times in journal.answers.items() if times > 1),
        *_sent_away_twice(journal.rooms),
    ]


def unanswered(journal: Journal) -> list[str]:
    """What was asked and is still without an answer."""
    return [each for each in journal.asked if each not in journal.answers]


def _twice_at_a_time(runs: Iterable[Run]) -> list[str]:
    of_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of_task[run.task].append(run)
    return [
        f"a task runs twice: {one}, {other}"
        for each in of_task.values()
        for one, other in combinations(each, 2)
        if max(one.began, other.began) < min(one.ended, other.ended)
    ]


def _started_again(runs: Iterable[Run]) -> list[str]:
    first: dict[str, Run] = {}
    return [f"started twice: {first[run.start]}, {run}" for run in runs if first.setdefault(run.start, run) is not run]


def _after_it_was_freed(journal: Journal) -> list[str]:
    return [
        f"its place was given away at {at:.2f}: {run}"
        for run in journal.runs
        if run.ended > (at := journal.freed.get(run.place, inf))
    ]


def _overbooked(journal: Journal, capacities: Mapping[str, int]) -> list[str]:
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for run in journal.runs:
        for began, ended, amount in run.amounts:
            changes[run.node] += [(began, amount), (ended, -amount)]
            for since, until in journal.lent.get(run.place, ()):
                since, until = max(since, began), min(until, ended)
                if since < until:
                    changes[run.node] += [(since, -amount), (until, amount)]
    found = []
    for node, each in sorted(changes.items()):
        used = 0
        for at, amount in sorted(each):  # of one instant, what ends comes first
            used += amount
            if used > capacities[node]:
                found.append(f"{node} has {capacities[node]} and runs {used} at {at:.2f}")
                break
    return found


def _sent_away_twice(rooms: Iterable[Room]) -> list[str]:
    """Whoever is sent away for somebody must have been chosen after all those sent before had given what they held."""
    last: dict[tuple[str, int], Room] = {}
    found = []
    for room in rooms:
        before = last.get((room.owner, room.attempt))
        if before is not None:
            found += [
                f"{sorted(room.victims)} were sent away for {room.owner} at {room.made}, chosen from {room.seen}: "
                f"{victim}, sent away at {before.made}, held what it had until {gave}"
                for victim, gave in before.victims.items()
                if gave > room.seen
            ]
        last[room.owner, room.attempt] = room
    return found
