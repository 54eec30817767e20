"""One document per node, composed of what each job asks of the node, and composed again only where that changed.

The outcome is always that of composing everything from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from ces_common.messages.desired import DesiredDocument
from ces_common.messages.records import JobRecord

C = TypeVar("C")  # what all jobs are planned on: nodes, topology
P = TypeVar("P")  # what one job asks of one node
W = TypeVar("W", bound=DesiredDocument)


@dataclass(frozen=True)
class _Made(Generic[P, W]):
    base: W
    parts: Sequence[P]
    document: W


class Composer(Generic[C, P, W]):
    """``share``: node -> what a job asks of it, a function of the job and the context alone. ``make``: a node's
    document from its document without jobs, and the jobs' parts in the order of the jobs. ``same``: whether a job
    surely asks the same in two contexts, ``alike``: whether two records of a job surely ask the same in one context; by
    default a new context, or record, has everything computed again."""

    def __init__(
        self,
        share: Callable[[JobRecord, C], Mapping[str, P]],
        make: Callable[[W, Sequence[P]], W],
        same: Callable[[JobRecord, C, C], bool] = lambda job, before, now: False,
        alike: Callable[[JobRecord, JobRecord], bool] = lambda before, now: False,
    ) -> None:
        self._share, self._make, self._same, self._alike = share, make, same, alike
        self._context: C | None = None
        self._shares: dict[str, tuple[JobRecord, Mapping[str, P]]] = {}
        self._made: dict[str, _Made[P, W]] = {}

    def compose(self, context: C, bases: Mapping[str, W], jobs: Iterable[JobRecord]) -> dict[str, W]:
        """The document of every node in ``bases``. Nothing is computed again for a context, record or base that is
        the very same object as last time, or that asks the same; any other equal copy counts as changed."""
        last, self._context = self._context, context
        before, shares = self._shares, dict[str, tuple[JobRecord, Mapping[str, P]]]()
        parts: dict[str, list[P]] = {name: [] for name in bases}
        for job in sorted(jobs, key=lambda job: job.id):
            known = before.get(job.id)
            if (
                known is not None
                and (known[0] is job or self._alike(known[0], job))
                and (context is last or (last is not None and self._same(job, last, context)))
            ):
                share = known[1]
            else:
                share = self._share(job, context)
            shares[job.id] = job, share
            for name, part in share.items():
                parts[name].append(part)
        self._shares = shares
        self._made = {name: self._document(name, base, parts[name]) for name, base in bases.items()}
        return {name: made.document for name, made in self._made.items()}

    def nodes_of(self, job: JobRecord) -> Set[str] | None:
        """The nodes of which this job's attempt asked something the last time; None if it was not there. May be asked
        while another thread composes."""
        known = self._shares.get(job.id)
        return None if known is None or known[0].attempt != job.attempt else known[1].keys()

    def _document(self, name: str, base: W, parts: list[P]) -> _Made[P, W]:
        last = self._made.get(name)
        if last is not None and last.base is base and _same(last.parts, parts):
            return last
        return _Made(base, parts, self._make(base, parts))


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
