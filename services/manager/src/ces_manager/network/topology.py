"""The topology file: its links replace all others, and jobs that they cannot carry are placed elsewhere."""

from __future__ import annotations

from functools import partial

from sqlalchemy import delete, insert

from ces_common.db.tables import LinkRow, MediumRow
from ces_common.db.uow import WriteTx
from ces_common.messages.api import TopologyFile
from ces_common.messages.events import TopologyChanged
from ces_common.messages.records import LinkRecord
from ces_common.quantities import LARGEST
from ces_manager.errors import Invalid
from ces_manager.jobs import lifecycle
from ces_manager.jobs.task_moves import lose_spare
from ces_manager.jobs.transitions import change
from ces_manager.network import link_states
from ces_manager.network.borders import border_links, border_names
from ces_manager.network.carried import not_carried


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
    lost = not_carried(tx, [*links, *border], media)
    for row, where in lost.jobs:
        change(tx, row, partial(lifecycle.reschedule, cause=lifecycle.Cause.TOPOLOGY, reason=where))
    for row, where in lost.moves:
        lose_spare(tx, row, where)


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
            links[src, dst] = LinkRecord(
                src=src, dst=dst, bandwidth=link.bandwidth, kind=link.kind, medium=link.medium, delay=link.delay
            )
    return list(links.values())
