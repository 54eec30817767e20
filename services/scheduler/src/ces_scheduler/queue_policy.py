"""The policy that decides over the queue: CES-Multi's cycle, or one that an installed package adds.

A package adds one through the entry-point group ``ces.queue_policies``. The entry point names a function like
:func:`ces_core.queue.cycle.cycle`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Protocol

from ces_common.service import BadSetup
from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters
from ces_core.queue.reservations import Solve
from ces_core.queue.state import Decisions, State

GROUP = "ces.queue_policies"
CES_MULTI = "ces-multi"


class QueuePolicy(Protocol):
    """Decides which waiting jobs start now, who has room kept and who makes room; pure, and called in a thread."""

    def __call__(
        self, state: State, parameters: Parameters, solve: Solve, sparing: Solve | None = None, /
    ) -> Decisions:
        """``solve`` asks the single-job solver, ``sparing`` its variant that counts what it leaves for later jobs."""


def get_queue_policy(name: str) -> QueuePolicy:
    """The queue policy of this name. Raises BadSetup; CES-Multi cannot be replaced."""
    if name == CES_MULTI:
        return cycle
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted({CES_MULTI, *points}))
        raise BadSetup(
            f"CES_QUEUE_POLICY: no queue policy is called {name!r}: use one of {known}, or install the package that "
            f"adds it to the entry-point group {GROUP}"
        )
    try:
        policy = points[name].load()
    except Exception as error:  # whatever another package's code raises
        raise BadSetup(
            f"CES_QUEUE_POLICY: {name} cannot be loaded from {points[name].value} ({type(error).__name__}: {error}): "
            f"mend or remove the package that adds it, or use {CES_MULTI}"
        ) from error
    if not callable(policy):
        raise BadSetup(
            f"CES_QUEUE_POLICY: {points[name].value} is no function like ces_core.queue.cycle.cycle: "
            f"name one in the package's entry point, or use {CES_MULTI}"
        )
    checked: QueuePolicy = policy
    return checked
