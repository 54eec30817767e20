"""Flows of all jobs by link and node, and those whose link falls short."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from manager_world import World, full_mesh, ring, sqlite_url

from ces_common.messages.dashboard import HeldFlow
from ces_common.messages.reports import FlowUsage, Heartbeat
from ces_manager.errors import Invalid
from ces_manager.live.look import Looker
from ces_manager.measurements import Measurements
from ces_manager.network.held_flows import list_flows

GIVEN = 10_000_000


class Site:
    """Three nodes and two jobs of two tasks each: ``one`` of tenant red on a and b, ``two`` of blue on b and c. Nodes
    measure ``carried`` of what each flow was given."""

    def __init__(self, folder: Path) -> None:
        self.world, self.measurements = World(sqlite_url(folder)), Measurements()
        self.world.add_nodes("a", "b", "c")
        self.world.put_topology(full_mesh(["a", "b", "c"]))
        for name, tenant, places in (("one", "red", ["a", "b"]), ("two", "blue", ["b", "c"])):
            job = self.world.submit(ring(name, tasks=2, tenant=tenant))
            self.world.run(job, places)

    def measure(self, carried: float) -> None:
        for _ in range(40):
            for node in "abc":
                flows = [
                    FlowUsage(number=number, measured=carried * GIVEN, peak=1, total=1, waited=1.0, rate=GIVEN)
                    for number in range(1, 5)
                ]
                self.measurements.heard(Heartbeat(node=node, boot="b", flows=flows), self.world.now)
            self.world.now += timedelta(seconds=2)

    def flows(self, *, limit: int = 100, cursor: str | None = None, **which: Any) -> list[HeldFlow]:
        with self.world.uow.read() as tx:
            page = list_flows(tx, self.measurements, self.world.now, cursor=cursor, limit=limit, **which)
        self.next = page.next
        return list(page.items)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.world.close()


def names(flows: list[HeldFlow]) -> list[tuple[str, list[str]]]:
    return [(flow.name, flow.path) for flow in flows]


def test_flows_are_found_by_link_node_and_tenant(site: Site) -> None:
    there, back, beyond, again = ("one", ["a", "b"]), ("one", ["b", "a"]), ("two", ["b", "c"]), ("two", ["c", "b"])
    assert names(site.flows()) == [there, back, beyond, again]
    assert names(site.flows(link=("a", "b"))) == [there]
    assert names(site.flows(link=("a", "c"))) == []
    assert names(site.flows(node="a")) == [there, back]
    assert names(site.flows(node="b", tenants=["blue"])) == [beyond, again]
    assert {(flow.min, flow.max, flow.rate) for flow in site.flows()} == {(GIVEN, 5 * GIVEN, GIVEN)}


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_hold_each_flow_once(site: Site, limit: int) -> None:
    found, cursor = [], None
    while True:
        found += site.flows(limit=limit, cursor=cursor)
        cursor = site.next
        if cursor is None:
            break
    assert [flow.number for flow in found] == [1, 2, 3, 4]
    with pytest.raises(Invalid):
        site.flows(cursor="a")


@pytest.mark.parametrize(("carried", "short"), [(1.0, 0), (0.5, 4)])
def test_only_links_that_fall_short_are_told(site: Site, carried: float, short: int) -> None:
    assert site.flows(short=True) == []  # nothing was measured yet
    site.measure(carried)
    assert len(site.flows(short=True)) == short
    assert len(site.flows(short=True, tenants=["red"])) == short / 2
    with site.world.uow.read() as tx:
        picture = Looker(site.measurements).look(tx, site.world.now)
    assert len(picture.shortfalls) == short
    assert all(
        each["tenant"] in ("red", "blue") and "lets 5 Mbit/s" in each["shortfall"]["text"]
        for each in picture.shortfalls.values()
    )


def test_what_was_measured_before_a_job_started_was_another_flow(site: Site) -> None:
    site.measure(1.0)
    assert {flow.measured for flow in site.flows()} == {GIVEN}
    job = site.world.submit(ring("three", tasks=2))
    site.world.run(job, ["a", "c"])
    latest = [flow for flow in site.flows() if flow.name == "three"]
    assert [flow.measured for flow in latest] == [None, None]
