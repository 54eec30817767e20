"""Documents per node, put together from what each job asks of each node, and made anew only where that changed.

What is remembered never shows in the outcome: it is that of making everything anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ces_common.messages.records import JobRecord
from ces_common.messages.wanted import WantedDocument

G = TypeVar("G")  # what all jobs stand on: nodes, topology
P = TypeVar("P")  # what one job asks of one node
W = TypeVar("W", bound=WantedDocument)


@dataclass(frozen=True)
class _Made(Generic[P, W]):
    base: W
    parts: Sequence[P]
    document: W


class Composer(Generic[G, P, W]):
    """``share``: what a job asks of each node, from nothing but the job and the ground. ``make``: a node's document
    from its document without jobs, and the jobs' parts in the order of the jobs."""

    def __init__(self, share: Callable[[JobRecord, G], Mapping[str, P]], make: Callable[[W, Sequence[P]], W]) -> None:
        self._share, self._make = share, make
        self._ground: G | None = None
        self._shares: dict[str, tuple[JobRecord, Mapping[str, P]]] = {}
        self._made: dict[str, _Made[P, W]] = {}

    def compose(self, ground: G, bases: Mapping[str, W], jobs: Iterable[JobRecord]) -> dict[str, W]:
        """The document of every node in ``bases``. Equal objects count as changed: only what is the very same ground,
        record or base is not computed again."""
        before = self._shares if ground is self._ground else {}
        self._ground, self._shares = ground, {}
        parts: dict[str, list[P]] = {name: [] for name in bases}
        for job in sorted(jobs, key=lambda job: job.id):
            known = before.get(job.id)
            if known is None or known[0] is not job:
                known = (job, self._share(job, ground))
            self._shares[job.id] = known
            for name, part in known[1].items():
                parts[name].append(part)
        self._made = {name: self._document(name, base, parts[name]) for name, base in bases.items()}
        return {name: made.document for name, made in self._made.items()}

    def _document(self, name: str, base: W, parts: list[P]) -> _Made[P, W]:
        last = self._made.get(name)
        if last is not None and last.base is base and _same(last.parts, parts):
            return last
        return _Made(base, parts, self._make(base, parts))


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
