"""A job in the public simulator, and what happens to it between two events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ces_core.malleable.model import MalleableJob, Running
from ces_sim.malleable.compat.events import Events
from ces_sim.malleable.cost import resize_s


@dataclass(eq=False)
class Simulated:
    """``running`` is what policies see. ``end``: when its end is looked at, ``done``: when it believes to be done
    (seconds; None where a policy does not say), ``overhead``: seconds of the time until the next event in which it does
    no work. ``started``: it has had GPUs."""

    number: int
    running: Running
    end: float = 0.0
    done: float | None = None
    overhead: float = 0.0
    started: bool = False

    @property
    def job(self) -> MalleableJob:
        return self.running.job

    @property
    def size(self) -> int:
        return self.running.size

    def work(self, seconds: float, now: float) -> float | None:
        """Work done in the time since the last event. Gives when it ended, if that was before the end looked for."""
        running = self.running
        if not running.size:
            return None
        rate = running.profile.rate(running.size)
        believed = self.end if self.done is None else self.done
        spent = seconds - max(0.0, now - believed)
        worked = 0.0 if spent < self.overhead else spent - self.overhead
        if running.left <= worked * rate and self.end > now:
            return now - seconds + math.ceil(running.left / rate)
        running.left -= worked * rate
        return None


def pass_time(jobs: Iterable[Simulated], events: Events[Simulated], seconds: float, now: float) -> None:
    """Let all jobs work; whose work is done has its end looked at now, and ends when that was."""
    for each in jobs:
        ended = each.work(seconds, now)
        each.overhead = 0.0
        if ended is not None:
            events.move_end(each, each.end, now)
            each.end = ended


class Placements:
    """Which sets of GPUs have held workers since the last restart: starting there again is cheap. After as
    many decisions as a slot has seconds there is a restart, at which all jobs pay."""

    def __init__(self, capacity: int, slot: int) -> None:
        self.capacity, self.slot = capacity, slot
        self._held: set[tuple[int, int]] = set()
        self._decisions = 0
        self._warm: set[tuple[int, int]] = set()
        self.restart = False

    def see(self, places: list[tuple[int, int]]) -> None:
        """The (begin, size) of every job now."""
        self._warm = {each for each in places if each in self._held}
        self._held.update(places)

    def decided(self) -> None:
        """One more decision."""
        self.restart = self._decisions > 0 and self._decisions % self.slot == 0
        self._decisions += 1
        if self.restart:
            self._held = set()

    def overhead(self, begin: int, size: int) -> float:
        """Seconds that a job loses that has these GPUs now."""
        return resize_s(size, self.capacity, warm=(begin, size) in self._warm, restart=self.restart)


@dataclass
class Tally:
    """Names of jobs that ended in time, that ended late, and that were refused."""

    on_time: list[str]
    late: list[str]
    refused: list[str]

    @staticmethod
    def new() -> Tally:
        return Tally([], [], [])

    def ended(self, job: MalleableJob, at: float) -> None:
        (self.on_time if at <= job.deadline_s else self.late).append(job.name)
