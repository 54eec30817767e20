"""From when on silence and delay have consequences. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ces_manager.policy import Policy


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Instants before which something lies too far back."""

    heard: datetime  # a node last heard before this is unreachable
    lease: datetime  # workers under a lease that ended before this are surely gone
    deadline: datetime  # a state whose deadline lies before this is overdue
    history: datetime  # older events and message ids are dropped


def cutoffs(now: datetime, policy: Policy) -> Cutoffs:
    return Cutoffs(
        heard=now - timedelta(seconds=policy.unreachable_after_s),
        lease=now - timedelta(seconds=policy.margin_s),
        deadline=now,
        history=now - timedelta(seconds=policy.retention_s),
    )


def lease_end(now: datetime, policy: Policy) -> datetime:
    """End of the lease that a heartbeat received at ``now`` renews. The agent counts from when it sent it, which was
    earlier, so its lease ends first."""
    return now + timedelta(seconds=policy.lease_s)


def gives_up(late: int, policy: Policy) -> bool:
    """Whether a job that has missed this many deadlines in a row has failed."""
    return late >= policy.max_late
