"""A cluster that runs no job, and a log that was made up, for tests of runs of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ces_common.jobfile import JobFile
from ces_common.states import JobState


class SubmittedJobs:
    """Its jobs ``end`` once they were asked for, or run until they are cancelled. ``says``: each task's log."""

    def __init__(self, ends: Callable[[str], bool], says: Sequence[str]) -> None:
        self._ends, self._says = ends, says
        self.files: list[JobFile] = []
        self.states: dict[str, JobState] = {}
        self.jobs = self
        self.nodes = SimpleNamespace(list=lambda: [])

    def submit(self, file: JobFile) -> Any:
        self.files.append(file)
        job = str(len(self.files))
        self.states[job] = JobState.RUNNING
        return self.get(job)

    def get(self, job: str) -> Any:
        return SimpleNamespace(id=job, state=self.states[job])

    def list(self) -> list[Any]:
        self.states |= {job: JobState.SUCCEEDED for job in self.states if self._ends(job)}
        return [self.get(job) for job in self.states]

    def cancel(self, job: str) -> None:
        self.states[job] = JobState.CANCELLED

    def logs(self, job: str, task: str) -> Sequence[str]:
        return self._says
