"""Failure detector: for how long nothing was heard of a node, a job or a worker, and when that has consequences.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from ces_manager.timeouts import Timeouts


class Unchanged:
    """For how long each thing has shown the same stamp to this process, on its own steady clock. What is seen for the
    first time has age zero, so no other clock, nor one from before a restart, plays a part."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Hashable, float]] = {}

    def ages(self, stamps: Mapping[str, Hashable], now: float) -> dict[str, float]:
        """Seconds since each thing was first seen with its present stamp. What is not named is forgotten."""
        before, self._seen = self._seen, {}
        for name, stamp in stamps.items():
            known = before.get(name)
            self._seen[name] = known if known is not None and known[0] == stamp else (stamp, now)
        return {name: now - since for name, (_, since) in self._seen.items()}

    def shows(self, name: str, stamp: Hashable) -> bool:
        """Whether that was the thing's stamp at the last look."""
        return name in self._seen and self._seen[name][0] == stamp

    def age(self, name: str, now: float) -> float:
        """The age of one thing, as of the last look; zero for what was not there."""
        return now - self._seen[name][1] if name in self._seen else 0.0


@dataclass(frozen=True)
class FailureDetector:
    """What this process has observed: nodes by their count of heartbeats, jobs waiting for their next state, workers
    waiting to start again. ``hearing``: seconds for which it could hear nodes; for the others, every second counts."""

    hearing: Callable[[], float]
    nodes: Unchanged = field(default_factory=Unchanged)
    jobs: Unchanged = field(default_factory=Unchanged)
    workers: Unchanged = field(default_factory=Unchanged)


def is_silent(age_s: float, timeouts: Timeouts) -> bool:
    """Whether a node that was last heard so long ago gets no new work."""
    return age_s > timeouts.unreachable_after_s


def is_lost(age_s: float, timeouts: Timeouts) -> bool:
    """Whether the workers of a node that was last heard so long ago have surely stopped. Its agent counts the lease
    from when it sent the heartbeat, which was before anybody here could see it, so its lease ends first."""
    return age_s > timeouts.lease_s + timeouts.margin_s


def gives_up(late: int, timeouts: Timeouts) -> bool:
    """Whether a job that has missed this many deadlines in a row has failed."""
    return late >= timeouts.max_late
