"""The jobs that hold something, kept up from look to look. No I/O."""

from __future__ import annotations

from ces_common.change_log import Mark
from ces_common.state_view import StateView


class Holders:
    def __init__(self) -> None:
        self._attempts: dict[str, str] = {}  # job -> its attempt
        self._looked = Mark()

    def given_back(self, view: StateView) -> bool:
        """Whether an attempt that held something at the last call holds nothing now."""
        changed, before = view.changed_jobs.since(self._looked), self._attempts
        self._looked = view.changed_jobs.mark
        if changed is None:
            self._attempts = {}
            changed = [*dict.fromkeys((*before, *view.jobs))]
        held = [(name, before[name]) for name in changed if name in before]
        for name in changed:
            job = view.jobs.get(name)
            if job is not None and job.allocations and not job.released:
                self._attempts[name] = job.key
            else:
                self._attempts.pop(name, None)
        return any(self._attempts.get(name) != attempt for name, attempt in held)
