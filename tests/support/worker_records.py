"""What workers wrote of their own lives (tests/e2e/programs/recorded.py), read from the nodes' disks, and the two
things that must hold for all of them: no task is alive twice at once, and nobody lives outside of an allocation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ces_client.audit import Allocation

CLOCK_STEP_S = 0.05  # by how much two readings of the time of day may disagree


@dataclass(frozen=True)
class Life:
    """One worker's life. ``start`` and ``end`` on the clock that processes share, ``born`` and ``died`` by the time of
    day. ``closed``: it said itself that it ends; else its end is the last that was heard of it."""

    allocation: str
    task: str
    incarnation: int
    nonce: str
    start: float
    end: float
    born: float
    died: float
    closed: bool


def read_lives(agents: Path) -> list[Life]:
    """Every life in the logs of a cluster's nodes, in order of birth."""
    lives = []
    for log in agents.glob("*/logs/*.log*"):
        found: dict[str, list[list[str]]] = defaultdict(list)
        for line in log.read_text(errors="replace").splitlines():
            words = line.split()
            if len(words) == 8 and words[0] == "record":
                found[words[5]].append(words)
        for nonce, lines in found.items():
            first, last = lines[0], lines[-1]
            lives.append(
                Life(
                    allocation=log.name.partition(".")[0],
                    task=first[2],
                    incarnation=int(first[3]),
                    nonce=nonce,
                    start=float(first[6]),
                    end=float(last[6]),
                    born=float(first[7]),
                    died=float(last[7]),
                    closed=last[1] == "end",
                )
            )
    return sorted(lives, key=lambda life: life.start)


def twice_alive(lives: Iterable[Life], allocations: Mapping[str, Allocation]) -> list[str]:
    """Workers of one task that lived at the same time, and incarnations that were started twice."""
    wrong = []
    tasks: dict[tuple[str, str], list[Life]] = defaultdict(list)
    seen: set[tuple[str, int]] = set()
    for life in lives:
        job = allocations[life.allocation].job if life.allocation in allocations else life.allocation
        tasks[job, life.task].append(life)
        if (life.allocation, life.incarnation) in seen:
            wrong.append(f"incarnation {life.incarnation} of {life.allocation} was started twice")
        seen.add((life.allocation, life.incarnation))
    for (job, task), its in tasks.items():
        longest = its[0]
        for life in its[1:]:
            if life.start < longest.end:
                wrong.append(f"{task} of {job} lived twice for {longest.end - life.start:.2f} s: {longest} and {life}")
            longest = max(longest, life, key=lambda each: each.end)
    return wrong


def outside(lives: Iterable[Life], allocations: Mapping[str, Allocation]) -> list[str]:
    """Workers that lived before their allocation was committed or after it had given its capacity back."""
    wrong = []
    for life in lives:
        allocation = allocations.get(life.allocation)
        if allocation is None:
            wrong.append(f"{life.task} lived without an allocation: {life}")
            continue
        since = datetime.fromisoformat(allocation.since).timestamp()
        if life.born < since - CLOCK_STEP_S:
            wrong.append(f"{life.task} lived {since - life.born:.2f} s before its allocation")
        until = datetime.fromisoformat(allocation.until).timestamp() if allocation.until else None
        if until is not None and life.died > until + CLOCK_STEP_S:
            wrong.append(f"{life.task} outlived its allocation by {life.died - until:.2f} s: {life} {allocation}")
    return wrong
