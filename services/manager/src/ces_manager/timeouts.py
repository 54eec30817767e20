"""Timeouts and retention of the manager, in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from ces_common.states import JobState

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    lease_s: float = 30.0  # how long a node's workers may run without word from the manager
    margin_s: float = 10.0  # beyond the lease, for the agent to stop them
    unreachable_after_s: float = 10.0  # silence after which a node gets no new work
    planned_s: float = 60.0
    preparing_s: float = 120.0
    starting_s: float = 600.0  # images may have to be pulled
    resizing_s: float = 120.0  # of which workers have a minute at most to end
    longest_s: float = 3600.0  # that a deadline grows to, and for which an agent may prepare a worker
    max_late: int = 3  # deadlines in a row that a job may miss before it fails
    keep_jobs_s: float = 30 * DAY_S  # settled jobs, with their plans and allocations
    # Events for clients that resume; the ids of consumed messages and join tokens that have ended. Never less than the
    # stream keeps facts, so that whatever it delivers again is recognised.
    keep_messages_s: float = 7 * DAY_S
    keep_removals_s: float = 3600.0  # what readers are told of nodes and jobs that were removed
    prune_jobs: int = 50  # at once; a job may have thousands of allocations
    prune_rows: int = 500

    def patience(self, state: JobState, late: int = 0) -> float | None:
        """Within how many seconds a job that has entered ``state`` must have left it; None where it may stay. Twice as
        long for each deadline that it missed before (``late``)."""
        first = {
            JobState.PLANNED: self.planned_s,
            JobState.PREPARING: self.preparing_s,
            JobState.STARTING: self.starting_s,
            JobState.RESIZING: self.resizing_s,
        }.get(state)
        return None if first is None else max(first, min(first * 2.0**late, self.longest_s))
