"""Keeps track of the jobs for which a condition holds, without looking at all jobs each time."""

from __future__ import annotations

from collections.abc import Callable, Set

from ces_common.change_log import Mark
from ces_common.messages.records import JobRecord
from ces_common.state_view import StateView


class FollowedJobs:
    """The ids of the jobs for which ``is_one`` holds. It is asked only about jobs that have changed, so it must
    depend on the record alone. ``look`` returns the set itself, which the next call changes."""

    def __init__(self, is_one: Callable[[JobRecord], bool]) -> None:
        self._is_one = is_one
        self._ids: set[str] = set()
        self._followed = Mark()

    def look(self, view: StateView) -> Set[str]:
        changed = view.changed_jobs.since(self._followed)
        if changed is None:
            self._ids.clear()
        for name in view.jobs if changed is None else changed:
            job = view.jobs.get(name)
            if job is not None and self._is_one(job):
                self._ids.add(name)
            else:
                self._ids.discard(name)
        self._followed = view.changed_jobs.mark
        return self._ids
