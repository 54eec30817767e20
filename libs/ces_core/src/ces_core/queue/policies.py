"""The queue policies by name: CES-Multi, and those that other packages add through the entry-point group
``ces.queue_policies``. The service and the simulator run the same functions."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from ces_core.model.errors import QueuePolicyError
from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters
from ces_core.queue.reservations import Solve
from ces_core.queue.state import Decisions, State

GROUP = "ces.queue_policies"
CES_MULTI = "ces-multi"


class QueuePolicy(Protocol):
    """Decides which waiting jobs start now, which get a reservation, and which running jobs make way. A pure function
    like :func:`ces_core.queue.cycle.cycle`; the service calls it in a thread."""

    def __call__(
        self, state: State, parameters: Parameters, solve: Solve, fragmentation_aware: Solve | None = None, /
    ) -> Decisions:
        """``solve`` asks the single-job solver, ``fragmentation_aware`` its variant that values the capacity that a
        plan leaves for later jobs."""


def queue_policy_names() -> list[str]:
    """All names, CES-Multi first. Nothing is loaded, so that a broken policy breaks no other."""
    return [CES_MULTI, *sorted(_others())]


def get_queue_policy(name: str = CES_MULTI) -> QueuePolicy:
    """The queue policy of this name. Raises QueuePolicyError; CES-Multi cannot be replaced."""
    if name == CES_MULTI:
        return cycle
    others = _others()
    if name not in others:
        known = ", ".join(queue_policy_names())
        raise QueuePolicyError(
            f"no queue policy is called {name!r}: use one of {known}, or install the package that adds it to the "
            f"entry-point group {GROUP}"
        )
    point = others[name]
    try:
        policy = point.load()
    except (Exception, SystemExit) as error:  # whatever another package's import ends with
        raise QueuePolicyError(
            f"{name} cannot be loaded from {point.value} ({type(error).__name__}: {error}): mend or remove the package "
            f"that adds it, or use {CES_MULTI}"
        ) from error
    if not callable(policy) or isinstance(policy, type):
        raise QueuePolicyError(
            f"{point.value} is no function like ces_core.queue.cycle.cycle: name one in the package's entry point, or "
            f"use {CES_MULTI}"
        )
    return cast(QueuePolicy, policy)


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name != CES_MULTI}
