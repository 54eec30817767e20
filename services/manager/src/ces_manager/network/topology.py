"""The topology file: its links replace all others, and jobs that they cannot carry are placed elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise

from sqlalchemy import delete, insert, select

from ces_common.db.tables import HopRow, JobRow, LinkRow, MediumRow, ReservationRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import TopologyFile
from ces_common.messages.events import TopologyChanged
from ces_common.messages.records import LinkRecord, kinds_on_media
from ces_common.quantities import LARGEST
from ces_common.shares import reservable, reservable_of_medium
from ces_common.states import JobState
from ces_manager.errors import Invalid
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change
from ces_manager.network import link_states
from ces_manager.network.borders import border_links, border_names


def put_topology(tx: WriteTx, file: TopologyFile) -> None:
    """Replace all links and media; jobs that the new ones cannot carry are rescheduled. A link that stays keeps its
    state, and so do border links, which are no part of the file. Raises Invalid."""
    links, border = directed_links(file), border_links(tx)
    standing = border_names(tx)
    for i, each in enumerate(file.links):
        if taken := standing & {each.src, each.dst}:
            raise Invalid(
                f"links[{i}]", f"{min(taken)} stands for another region's gateway: its links are set up there"
            )
    known = link_states.live_states(tx, links)
    own = LinkRow.src.not_in(standing) & LinkRow.dst.not_in(standing)
    for statement in (delete(LinkRow).where(own), delete(MediumRow)):
        tx.session.execute(statement, execution_options={"synchronize_session": False})
    if file.media:
        tx.session.execute(insert(MediumRow), [medium.model_dump(mode="python") for medium in file.media])
    if links:
        rows = [link.model_dump(mode="python") | known[link.src, link.dst] for link in links]
        tx.session.execute(insert(LinkRow), rows)
    tx.cluster().topology_version = tx.version
    tx.emit("topology", "changed", "topology", TopologyChanged(links=len(links), media=len(file.media)))
    media = {medium.name: medium.bandwidth for medium in file.media}
    for row, where in jobs_not_carried(tx, [*links, *border], media):
        change(tx, row, partial(lifecycle.reschedule, cause=lifecycle.Cause.TOPOLOGY, reason=where))


def directed_links(file: TopologyFile) -> list[LinkRecord]:
    """Every directed link of a topology file. Raises Invalid for one that is given twice, leads to itself, carries
    nothing or names a medium that is not there."""
    media: set[str] = set()
    for i, medium in enumerate(file.media):
        if medium.name in media:
            raise Invalid(f"media[{i}].name", f"medium {medium.name} is given twice")
        if not 0 < medium.bandwidth <= LARGEST:
            raise Invalid(f"media[{i}].bandwidth", "must be more than zero")
        media.add(medium.name)
    links: dict[tuple[str, str], LinkRecord] = {}
    for i, link in enumerate(file.links):
        if link.src == link.dst:
            raise Invalid(f"links[{i}]", f"a link needs two different nodes, not {link.src} twice")
        if not 0 < link.bandwidth <= LARGEST:
            raise Invalid(f"links[{i}].bandwidth", "must be more than zero")
        if link.medium is not None and link.medium not in media:
            raise Invalid(f"links[{i}].medium", f"no medium is named {link.medium}; list it under media")
        for src, dst in [(link.src, link.dst), (link.dst, link.src)][: 2 if link.both else 1]:
            if (src, dst) in links:
                raise Invalid(f"links[{i}]", f"link {src} › {dst} is given twice")
            links[src, dst] = LinkRecord(src=src, dst=dst, bandwidth=link.bandwidth, kind=link.kind, medium=link.medium)
    return list(links.values())


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
