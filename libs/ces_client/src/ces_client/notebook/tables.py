"""Lists as HTML. Views are imported where they are drawn: most who use the SDK draw nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ces_common.messages.api import JobSummary, LinkView, NodeView
from ces_common.messages.dashboard import HeldFlow


def jobs(found: Sequence[JobSummary]) -> str:
    from ces_client.notebook.markup import html
    from ces_client.view.formats import local_now
    from ces_client.view.lists import job_table

    return html(job_table(found, local_now()))


def nodes(found: Sequence[NodeView]) -> str:
    from ces_client.notebook.markup import html
    from ces_client.view.formats import local_now
    from ces_client.view.lists import node_table

    return html(node_table(found, local_now()))


def links(found: Sequence[LinkView]) -> str:
    from ces_client.notebook.markup import html
    from ces_client.view.lists import link_table

    return html(link_table(found))


def flows(found: Sequence[HeldFlow]) -> str:
    from ces_client.notebook.markup import html
    from ces_client.view.flows import held_table

    return html(held_table(found))
