"""Lists page by cursor."""

from __future__ import annotations

import pytest
from manager_world import World, ring

from ces_common.states import AllocationState, JobState
from ces_manager.errors import Invalid
from ces_manager.jobs import job_views
from ces_manager.measurements import Measurements
from ces_manager.network import link_views
from ces_manager.nodes import node_views

NODES = ["a", "b", "c", "d"]


J, A = JobState, AllocationState


def test_lists_page_by_cursor(world: World) -> None:
    for i in range(5):
        world.wait(1)
        world.submit(ring(f"job-{i}"))
    with world.uow.read() as tx:
        first = job_views.list_jobs(tx, cursor=None, limit=3, state=None, name=None)
        rest = job_views.list_jobs(tx, cursor=first.next, limit=3, state=J.QUEUED, name=None)
        assert [job.name for job in (*first.items, *rest.items)] == [f"job-{i}" for i in (4, 3, 2, 1, 0)]
        assert rest.next is None
        nodes = node_views.list_nodes(tx, Measurements(), cursor=None, limit=3)
        assert [n.name for n in node_views.list_nodes(tx, Measurements(), cursor=nodes.next, limit=3).items] == ["d"]
        links = link_views.list_links(tx, Measurements(), cursor=None, limit=10)
        assert len(link_views.list_links(tx, Measurements(), cursor=links.next, limit=10).items) == 2
        with pytest.raises(Invalid):
            link_views.list_links(tx, Measurements(), cursor="x", limit=1)
