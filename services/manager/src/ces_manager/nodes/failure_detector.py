"""Failure detector: for how long nothing was heard of nodes and controllers, how long jobs and workers have waited, and
when that has consequences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ces_common.sign_of_life import SIGN_OF_LIFE_S
from ces_manager.nodes.deadlines import Responsible, Waits
from ces_manager.timeouts import Timeouts
from ces_manager.unchanged import Unchanged

CONTROLLER_SILENT_S = 3 * SIGN_OF_LIFE_S


@dataclass
class FailureDetector:
    """What this process has observed: nodes by their count of heartbeats, controllers by their signs of life, jobs that
    wait for their next state, workers that wait to start again, and moves that wait for their network. ``hearing``:
    seconds for which it could hear. ``hindrances``: job -> who is away on whom it waits, as of the last look."""

    hearing: Callable[[], float]
    nodes: Unchanged = field(default_factory=Unchanged)
    jobs: Waits = field(default_factory=Waits)
    workers: Waits = field(default_factory=Waits)
    moves: Waits = field(default_factory=Waits)
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
    """Whether a node that was last heard ``age_s`` seconds ago gets no new work."""
    return age_s > timeouts.unreachable_after_s


def is_lost(age_s: float, timeouts: Timeouts, outlives_s: float = 0.0) -> bool:
    """Whether the workers of a node that was last heard ``age_s`` seconds ago, and that go on for ``outlives_s`` beyond
    its lease, have surely stopped. Its agent counts the lease from when it sent the heartbeat, which was before anybody
    here could see it, so its lease ends first."""
    return age_s > timeouts.lease_s + outlives_s + timeouts.margin_s


def gives_up(late: int, timeouts: Timeouts) -> bool:
    """Whether a job that has missed this many deadlines in a row has failed."""
    return late >= timeouts.max_late
