"""The result of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ces_client.audit.books import Books
from ces_client.audit.findings import Finding
from ces_client.audit.inventory import Inventory
from ces_client.audit.usage import Peak


@dataclass(frozen=True)
class Verdict:
    """``first`` and ``last``: numbers of the events read; ``since`` and ``until``: their times. ``jobs``: state ->
    number of jobs at the end. ``deadlines_kept`` and ``deadlines_missed``: jobs that succeeded in time, and later.
    ``held``: number of allocations that hold capacity at the end. ``peaks``: the highest use of each kind.
    ``checked``: promise (a key of ``PROMISES``) -> how often it was checked; findings are of these kinds.
    ``unjudged``: what could not be checked, and why.
    """

    events: int
    first: int | None
    last: int | None
    since: str | None
    until: str | None
    jobs: Mapping[str, int]
    plans: int
    revisions: int
    deadlines_kept: int
    deadlines_missed: int
    held: int
    peaks: tuple[Peak, ...]
    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    unjudged: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        peaks = [asdict(peak) | {"share": round(peak.share, 4)} for peak in self.peaks]
        findings = [asdict(finding) for finding in self.findings]
        lists = {"peaks": peaks, "findings": findings, "unjudged": list(self.unjudged)}
        return asdict(self) | lists | {"clean": self.clean}


def verdict_of(books: Books, inventory: Inventory) -> Verdict:
    """The verdict on closed books."""
    first, last = books.first, books.last
    return Verdict(
        events=books.count,
        first=None if first is None else int(first["sequence"]),
        last=None if last is None else int(last["sequence"]),
        since=None if first is None else first["time"],
        until=None if last is None else last["time"],
        jobs=dict(Counter(str(job.state) for job in books.jobs.values())),
        plans=len(books.plans),
        revisions=books.revisions,
        deadlines_kept=books.deadlines.kept,
        deadlines_missed=books.deadlines.missed,
        held=sum(1 for _ in books.live()),
        peaks=tuple(books.peaks.values()),
        checked=books.checked,
        findings=tuple(books.findings),
        unjudged=tuple(_unjudged(books, inventory)),
    )


def _unjudged(books: Books, inventory: Inventory) -> Iterable[str]:
    if books.first is not None and int(books.first["sequence"]) != 1:
        before = f"; {len(books.before)} jobs began before it" if books.before else ""
        yield f"the log begins with event {books.first['sequence']}{before}: what began before is not judged"
    if inventory.links is None:
        yield "links and media: the topology is not known"
    placed = {allocation.job for allocation in books.allocations.values()}
    unknown = [job for job in placed if inventory.request_of(job, books.jobs[job].name) is None]
    if unknown:
        yield f"CPU, memory and GPUs of {len(unknown)} jobs: what their tasks asked for is not known"
