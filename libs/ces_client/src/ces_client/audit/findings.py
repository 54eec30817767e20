"""What an audit finds, one broken promise each, and how often it has looked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ces_client.audit.promises import LOG

Where = tuple[str | None, str | None]  # a node or a link
NOWHERE: Where = (None, None)


@dataclass(frozen=True)
class Finding:
    """One broken promise, found while the event log is replayed (:mod:`ces_client.audit.books`). ``event``: the number
    of the event that shows it; ``kind``: a key of ``PROMISES``; ``text``: what is wrong, for people. ``job`` (its
    id), ``node`` and ``link`` (``SRC>DST``): what it is about, where that is known."""

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
    something else; and by kind how much was ``checked``."""

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self.checked: Counter[str] = Counter()
        self._number = 0
        self._job: str | None = None
        self._where: Where = NOWHERE

    def read(self, number: int, data: Mapping[str, Any]) -> None:
        """Begin with the next event."""
        self._number, self._job, self._where = number, data.get("job"), (data.get("node"), None)
        self.checked[LOG] += 1

    def add(self, kind: str, text: str, *, job: str | None = None, where: Where | None = None) -> None:
        node, link = where or self._where
        self.all.append(Finding(self._number, kind, text, job or self._job, node, link))

    def check(self, kind: str, texts: Iterable[str], number: int = 1) -> None:
        """Counts ``number`` checks of this kind, and adds what they found."""
        self.checked[kind] += number
        for text in texts:
            self.add(kind, text)

    def of_log(self, number: int, text: str) -> None:
        """One about the log itself, at an event that has not been read yet."""
        self.all.append(Finding(number, LOG, text))
