"""Failure detector: for how long nothing was heard of nodes and controllers, how long jobs and workers have waited, and
when that has consequences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from ces_common.sign_of_life import SIGN_OF_LIFE_S
from ces_manager.nodes.deadlines import Responsible, Waits
from ces_manager.timeouts import Timeouts

CONTROLLER_SILENT_S = 3 * SIGN_OF_LIFE_S


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

    def stamp(self, name: str) -> Hashable | None:
        """What the thing showed at the last look; None for what was not there."""
        known = self._seen.get(name)
        return None if known is None else known[0]

    def age(self, name: str, now: float) -> float:
        """The age of one thing, as of the last look; zero for what was not there."""
        return now - self._seen[name][1] if name in self._seen else 0.0


@dataclass
class FailureDetector:
    """What this process has observed: nodes by their count of heartbeats, controllers by their signs of life, jobs that
    wait for their next state and workers that wait to start again. ``hearing``: seconds for which it could hear.
    ``hindrances``: job -> who is away on whom it waits, as of the last look."""

    hearing: Callable[[], float]
    nodes: Unchanged = field(default_factory=Unchanged)
    jobs: Waits = field(default_factory=Waits)
    workers: Waits = field(default_factory=Waits)
    hindrances: Mapping[str, str] = field(default_factory=dict)
    since: float = field(init=False)  # when it began
    _controllers: dict[str, float] = field(default_factory=dict, init=False)  # when each was last heard

    def __post_init__(self) -> None:
        self.since = self.hearing()

    def heard(self, controller: str) -> None:
        self._controllers[controller] = self.hearing()

    def controller(self, name: str) -> Responsible:
        return Responsible(name, self._controllers.get(name), CONTROLLER_SILENT_S)


def is_silent(age_s: float, timeouts: Timeouts) -> bool:
    """Whether a node that was last heard so long ago gets no new work."""
    return age_s > timeouts.unreachable_after_s


def is_lost(age_s: float, timeouts: Timeouts, outlives_s: float = 0.0) -> bool:
    """Whether the workers of a node that was last heard so long ago, and that go on for ``outlives_s`` beyond its
    lease, have surely stopped. Its agent counts the lease from when it sent the heartbeat, which was before anybody
    here could see it, so its lease ends first."""
    return age_s > timeouts.lease_s + outlives_s + timeouts.margin_s


def gives_up(late: int, timeouts: Timeouts) -> bool:
    """Whether a job that has missed this many deadlines in a row has failed."""
    return late >= timeouts.max_late
