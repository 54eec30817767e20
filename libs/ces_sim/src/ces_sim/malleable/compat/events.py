"""The simulator's list of events: arrivals and ends, merged where they lie less than a slot after now."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job", bound=Hashable)


@dataclass
class Event(Generic[Job]):
    """``time`` in seconds, the jobs that arrive then, and those whose end is looked at."""

    time: float
    arrivals: list[Job] = field(default_factory=list)
    ends: list[Job] = field(default_factory=list)


class Events(Generic[Job]):
    """Events by time. A job has one end at most; what else was to be looked at stays, with or without a reason."""

    def __init__(self, arrivals: Iterable[tuple[float, Job]]) -> None:
        self._at_time: dict[float, Event[Job]] = {}
        self._times: list[float] = []  # a heap; times without event are passed over
        for time, job in arrivals:
            self.look(time).arrivals.append(job)

    def __len__(self) -> int:
        return len(self._at_time)

    @property
    def first_time(self) -> float:
        """Of the next event; infinite if there is none."""
        while self._times and self._times[0] not in self._at_time:
            heapq.heappop(self._times)
        return self._times[0] if self._times else math.inf

    def look(self, time: float) -> Event[Job]:
        """Have an event then, with nothing in it if it is new."""
        found = self._at_time.get(time)
        if found is None:
            found = self._at_time[time] = Event(time)
            heapq.heappush(self._times, time)
        return found

    def add_end(self, job: Job, time: float) -> None:
        event = self.look(time)
        if job not in event.ends:
            event.ends.append(job)

    def move_end(self, job: Job, old: float, new: float) -> None:
        """The job ends at another time. An event that holds nothing then is gone."""
        if old == new:
            return
        before = self._at_time.get(old)
        if before is not None:
            if job in before.ends:
                before.ends.remove(job)
            if not before.ends and not before.arrivals:
                del self._at_time[old]
        self.add_end(job, new)

    def take(self, time: float) -> Event[Job] | None:
        """The event of this time, which is taken out."""
        return self._at_time.pop(time, None)

    def merge(self, now: float, slot: float) -> None:
        """Everything at most a slot from now happens a slot from now, at once; a single last event stays."""
        if len(self) < 2 or self.first_time - now > slot:
            return
        merged: Event[Job] = Event(now + slot)
        while self.first_time - now <= slot:
            event = self._at_time.pop(self.first_time)
            merged.arrivals += event.arrivals
            merged.ends += event.ends
        self._at_time[merged.time] = merged
        heapq.heappush(self._times, merged.time)
