"""Jobs whose flows their links no longer carry, since these have become smaller or are gone; and tasks that move, for
which the same is so of what is held beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from sqlalchemy import select

from ces_common.db.tables import HopRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.messages.records import LinkRecord, kinds_on_media
from ces_common.shares import reservable, reservable_of_medium
from ces_common.states import JobState
from ces_manager.jobs.task_moves import ASIDE

Hop = tuple[str, str]
Blamed = list[tuple[JobRow, str]]  # each with the link or medium at fault


@dataclass(frozen=True, slots=True)
class NotCarried:
    """``jobs``: those whose flows no longer fit; ``moves``: others, where only what is held for a task's move does
    not."""

    jobs: Blamed = field(default_factory=list)
    moves: Blamed = field(default_factory=list)


def not_carried(tx: ReadTx, links: Iterable[LinkRecord], media: dict[str, int]) -> NotCarried:
    """What no longer fits. Jobs of higher priority, then older ones, keep their place; moves come after all jobs."""
    known = {(link.src, link.dst): link for link in links}
    left: Counter[Hop] = Counter({hop: reservable(link.capacity) for hop, link in known.items()})
    kinds = kinds_on_media(known.values())
    air: Counter[str] = Counter(
        {name: reservable_of_medium(bandwidth, kinds.get(name, ())) for name, bandwidth in media.items()}
    )
    query = (
        select(JobRow, HopRow, (ReservationRow.attempt == ASIDE).label("beside"))
        .join(ReservationRow, ReservationRow.job == JobRow.id)
        .join(HopRow, HopRow.number == ReservationRow.number)
        .where(ReservationRow.held)
        .order_by(JobRow.priority.desc(), JobRow.id)
    )
    shares: dict[tuple[bool, str], tuple[JobRow, Counter[Hop]]] = {}
    for job, share, beside in tx.session.execute(query):
        shares.setdefault((bool(beside), job.id), (job, Counter()))[1][share.src, share.dst] += share.rate
    found = NotCarried(_stranded(tx, known))
    for (beside, _), (row, asked) in sorted(shares.items(), key=lambda each: each[0][0]):
        if beside and any(row is other for other, _ in found.jobs):
            continue  # with its place it gives up its move
        through = Counter[str]()
        for hop, bandwidth in asked.items():
            if hop in known and known[hop].medium is not None:
                through[str(known[hop].medium)] += bandwidth
        gone = [f"link {src} › {dst} is gone" for src, dst in asked if (src, dst) not in known]
        small = [f"link {src} › {dst} has too little left" for src, dst in asked if asked[src, dst] > left[src, dst]]
        full = [f"medium {name} has too little left" for name in through if through[name] > air[name]]
        if gone or small or full:
            (found.moves if beside else found.jobs).append((row, (gone + small + full)[0]))
        else:
            left.subtract(asked)
            air.subtract(through)
    return found


def _stranded(tx: ReadTx, known: Mapping[Hop, LinkRecord]) -> Blamed:
    """Suspended jobs that could not resume where they are even on idle links."""
    query = (
        select(JobRow, ReservationRow)
        .join(ReservationRow, ReservationRow.job == JobRow.id)
        .where(ReservationRow.held, JobRow.state == JobState.SUSPENDED)
        .order_by(JobRow.priority.desc(), JobRow.id)
    )
    found: dict[str, tuple[JobRow, str]] = {}
    for job, flow in tx.session.execute(query):
        for src, dst in pairwise(flow.path):
            link = known.get((src, dst))
            if link is None:
                found.setdefault(job.id, (job, f"link {src} › {dst} is gone"))
            elif flow.min > reservable(link.capacity):
                found.setdefault(job.id, (job, f"link {src} › {dst} is too small"))
    return list(found.values())
