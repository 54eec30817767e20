"""The jobs that wait for a place, kept up from look to look. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ces_common.change_log import Mark
from ces_common.messages.records import JobRecord
from ces_common.state_view import StateView
from ces_scheduler.cycle_input import is_queued


class WaitingJobs:
    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self._looked = Mark()
        self._told: tuple[Mark, Set[str], list[JobRecord]] = (Mark(), frozenset(), [])

    @property
    def jobs(self) -> Mapping[str, JobRecord]:
        """By id, as of the last look."""
        return self._jobs

    def look(self, view: StateView) -> Sequence[str] | None:
        """Take in what has changed, and return of which jobs; None where that may be all."""
        changed = view.changed_jobs.since(self._looked)
        if changed is None:
            self._jobs.clear()
        for name in view.jobs if changed is None else changed:
            job = view.jobs.get(name)
            if job is not None and is_queued(job):
                self._jobs[name] = job
            else:
                self._jobs.pop(name, None)
        self._looked = view.changed_jobs.mark
        return changed

    def but(self, others: Set[str]) -> list[JobRecord]:
        """All but these. It is the very same list as the last time where nothing has changed: not to be changed."""
        if self._told[:2] != (self._looked, others):
            self._told = (self._looked, others, [job for name, job in self._jobs.items() if name not in others])
        return self._told[2]
