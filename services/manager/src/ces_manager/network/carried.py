"""Jobs whose flows their links no longer carry, since these have become smaller or are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from sqlalchemy import select

from ces_common.db.tables import HopRow, JobRow, ReservationRow
from ces_common.db.uow import ReadTx
from ces_common.messages.records import LinkRecord, kinds_on_media
from ces_common.shares import reservable, reservable_of_medium
from ces_common.states import JobState


def jobs_not_carried(tx: ReadTx, links: Iterable[LinkRecord], media: dict[str, int]) -> list[tuple[JobRow, str]]:
    """Jobs whose flows no longer fit, each with the link or medium at fault. Jobs of higher priority, then older ones,
    keep their place."""
    known = {(link.src, link.dst): link for link in links}
    left: Counter[tuple[str, str]] = Counter({hop: reservable(link.capacity) for hop, link in known.items()})
    kinds = kinds_on_media(known.values())
    air: Counter[str] = Counter(
        {name: reservable_of_medium(bandwidth, kinds.get(name, ())) for name, bandwidth in media.items()}
    )
    query = (
        select(JobRow, HopRow)
        .join(ReservationRow, ReservationRow.job == JobRow.id)
        .join(HopRow, HopRow.number == ReservationRow.number)
        .where(ReservationRow.held)
        .order_by(JobRow.priority.desc(), JobRow.id)
    )
    shares: dict[str, tuple[JobRow, Counter[tuple[str, str]]]] = {}
    for job, share in tx.session.execute(query):
        shares.setdefault(job.id, (job, Counter()))[1][share.src, share.dst] += share.rate
    moved = _stranded(tx, known)
    for row, asked in shares.values():
        through = Counter[str]()
        for hop, bandwidth in asked.items():
            if hop in known and known[hop].medium is not None:
                through[str(known[hop].medium)] += bandwidth
        gone = [f"link {src} › {dst} is gone" for src, dst in asked if (src, dst) not in known]
        small = [f"link {src} › {dst} has too little left" for src, dst in asked if asked[src, dst] > left[src, dst]]
        full = [f"medium {name} has too little left" for name in through if through[name] > air[name]]
        if gone or small or full:
            moved.append((row, (gone + small + full)[0]))
        else:
            left.subtract(asked)
            air.subtract(through)
    return moved


def _stranded(tx: ReadTx, known: Mapping[tuple[str, str], LinkRecord]) -> list[tuple[JobRow, str]]:
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
