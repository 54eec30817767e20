"""What an audit finds: one broken rule each, and the kinds of rules that it checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Where = tuple[str | None, str | None]  # a node or a link
NOWHERE: Where = (None, None)
KINDS = {
    "log": "the log has a gap, a repetition, or says two things",
    "step": "an illegal change of state",
    "plan": "a plan that differs from the job's request, or uses a node or link that it must not",
    "twice": "a task ran in two places at once",
    "overbooked": "more of a node, link or medium was held than plans may reserve",
    "held": "something was not released",
    "deadline": "a job that was refused for its deadline had a plan",
    "reservation": "a job started later than its reservation said",
}


@dataclass(frozen=True)
class Finding:
    """One broken rule, found while the event log is replayed (:mod:`ces_client.audit.books`). ``event``: the number of
    the event that shows it; ``kind``: a key of ``KINDS``; ``text``: what is wrong, for people. ``job`` (its id),
    ``node`` and ``link`` (``SRC>DST``): what it is about, where that is known."""

    event: int
    kind: str
    text: str
    job: str | None = None
    node: str | None = None
    link: str | None = None

    def __str__(self) -> str:
        return f"event {self.event}: {self.text}"


class Findings:
    """All findings so far, each about what the event that is being read is about, unless it is said to be about
    something else."""

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self._number = 0
        self._job: str | None = None
        self._where: Where = NOWHERE

    def read(self, number: int, data: Mapping[str, Any]) -> None:
        """Begin with the next event."""
        self._number, self._job, self._where = number, data.get("job"), (data.get("node"), None)

    def add(self, kind: str, text: str, *, job: str | None = None, where: Where | None = None) -> None:
        node, link = where or self._where
        self.all.append(Finding(self._number, kind, text, job or self._job, node, link))

    def add_all(self, kind: str, texts: Iterable[str]) -> None:
        for text in texts:
            self.add(kind, text)

    def of_log(self, number: int, text: str) -> None:
        """One about the log itself, at an event that has not been read yet."""
        self.all.append(Finding(number, "log", text))
