"""What metrics tell of nodes, links and jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from manager_world import World, full_mesh, ring
from prometheus_client.metrics_core import Metric
from sqlalchemy.exc import OperationalError

from ces_common.messages.energy import EnergyReport
from ces_common.messages.reports import Heartbeat, LinkReport, LinkStatus, LinkUsage
from ces_manager.database import Database
from ces_manager.energy.notes import note_energy
from ces_manager.live.cluster_metrics import OF_LINKS, OF_NODES, ClusterMetrics
from ces_manager.live.feed import EVERY_S
from ces_manager.measurements import Measurements
from ces_manager.network.link_states import take_reports
from ces_manager.nodes import operations

Told = dict[tuple[str, ...], float]
USED = LinkUsage(peer="b", sent=8e6, received=0, drops=7, errors=2, round_trip_s=0.004)


@pytest.fixture
def measurements() -> Measurements:
    return Measurements()


def told(families: Any) -> Told:
    """Name, then the values of the labels."""
    found: Told = {}
    for family in families:
        assert isinstance(family, Metric)
        for sample in family.samples:
            assert (sample.name, *sample.labels.values()) not in found
            found[sample.name, *sample.labels.values()] = sample.value
    return found


async def seen(world: World, measurements: Measurements, *, links: bool = True) -> Told:
    database = Database(world.uow, world.clock)
    metrics = ClusterMetrics(database, measurements, links=links)
    await metrics.look()
    found = told(metrics.collect())
    database.close()
    return found


async def test_units_are_those_of_prometheus(world: World, measurements: Measurements) -> None:
    beat = Heartbeat(node="a", boot="b", cpu=1500, memory=2**20, links=[USED])
    measurements.heard(beat, world.now - timedelta(seconds=3))
    assert world.commit(world.propose(world.submit(ring(tasks=2)), ["a", "b"])) is None
    found = await seen(world, measurements)
    assert found["ces_node_cpu_allocated_cores", "a"] == 0.5
    assert found["ces_node_cpu_used_cores", "a"] == 1.5
    assert found["ces_node_memory_used_bytes", "a"] == 2**20
    assert found["ces_node_memory_allocated_bytes", "a"] == 128 * 2**20
    assert found["ces_node_heartbeat_age_seconds", "a"] == 3
    assert found["ces_link_bytes_per_second", "a", "b"] == 100e6 / 8
    assert found["ces_link_reserved_bytes_per_second", "a", "b"] == 10e6 / 8
    assert found["ces_link_used_bytes_per_second", "a", "b"] == 1e6
    assert found["ces_link_dropped_packets_total", "a", "b"] == 7
    assert found["ces_link_damaged_packets_total", "a", "b"] == 2
    assert found["ces_link_round_trip_seconds", "a", "b"] == 0.004
    assert found["ces_database_up",] == 1


async def test_what_nobody_measured_lately_has_no_series(world: World, measurements: Measurements) -> None:
    beat = Heartbeat(node="a", boot="b", cpu=1500, memory=2**20, links=[USED])
    measurements.heard(beat, world.now - timedelta(minutes=1))
    found = await seen(world, measurements)
    used = {name for name in {key[0] for key in found} if "used" in name or "dropped" in name}
    assert used == set()
    assert found["ces_node_heartbeat_age_seconds", "a"] == 60
    assert ("ces_node_heartbeat_age_seconds", "b") not in found


async def test_what_was_removed_leaves_no_series(world: World, measurements: Measurements) -> None:
    metrics = ClusterMetrics(Database(world.uow, world.clock), measurements)
    measurements.heard(Heartbeat(node="c", boot="b"), world.now)
    await metrics.look()
    assert {key[1] for key in told(metrics.collect()) if key[0] == "ces_node_up"} == {"a", "b", "c"}
    world.write(lambda tx: operations.cordon(tx, "c"))
    world.forget("c")
    world.wait(EVERY_S)
    world.put_topology(full_mesh(["a", "b"]))
    await metrics.look()
    assert not [key for key in told(metrics.collect()) if "c" in key[1:]]


async def test_states_of_nodes_and_links(world: World, measurements: Measurements) -> None:
    world.write(lambda tx: operations.cordon(tx, "b"))
    world.write(lambda tx: take_reports(tx, [LinkReport(node="a", links=[LinkStatus(peer="b", state="down")])]))
    found = await seen(world, measurements)
    assert [found["ces_node_cordoned", node] for node in "abc"] == [0, 1, 0]
    assert [found["ces_node_up", node] for node in "abc"] == [1, 1, 1]
    assert (found["ces_link_up", "a", "b"], found["ces_link_up", "b", "a"]) == (0, 1)


async def test_jobs_are_counted_by_tenant_and_state_and_who_waits_for_longest(
    world: World, measurements: Measurements
) -> None:
    world.submit(ring(tenant="vision"))
    world.wait(5)
    world.submit(ring(tenant="vision"))
    world.commit(world.propose(world.submit(ring(tenant="speech")), ["a", "b", "c"]))
    world.wait(2)
    found = await seen(world, measurements)
    assert found["ces_jobs", "vision", "queued"] == 2
    assert found["ces_jobs", "speech", "planned"] == 1
    assert found["ces_queue_oldest_wait_seconds", "vision"] == 7
    assert ("ces_queue_oldest_wait_seconds", "speech") not in found


async def test_links_can_be_left_out(world: World, measurements: Measurements) -> None:
    with_links, without = await seen(world, measurements), await seen(world, measurements, links=False)
    assert {key[0] for key in with_links} & OF_LINKS.keys()
    assert not {key[0] for key in without} & OF_LINKS.keys()
    assert {key[0] for key in without} & OF_NODES.keys()


async def test_it_looks_once_whoever_asks_until_some_seconds_have_passed(
    world: World, measurements: Measurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = ClusterMetrics(Database(world.uow, world.clock), measurements)
    looks, look = 0, metrics._look

    def counted(tx: Any) -> Any:
        nonlocal looks
        looks += 1
        return look(tx)

    monkeypatch.setattr(metrics, "_look", counted)
    for _ in range(3):
        await metrics.look()
    assert looks == 1
    world.wait(EVERY_S)
    await metrics.look()
    assert looks == 2


async def test_without_the_database_the_rest_is_told(
    world: World, measurements: Measurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = ClusterMetrics(Database(world.uow, world.clock), measurements)
    await metrics.look()
    world.wait(EVERY_S)

    def away(_: Any) -> Any:
        raise OperationalError("SELECT 1", {}, ConnectionError("away"))

    monkeypatch.setattr(metrics, "_look", away)
    await metrics.look()
    assert told(metrics.collect()) == {("ces_database_up",): 0}, "and nothing that may be no more so"


async def test_energy_is_told_with_how_it_is_known_and_of_other_nodes_nothing(
    world: World, measurements: Measurements
) -> None:
    for boot, source in (("b", "measured"), ("c", "modelled")):
        report = EnergyReport.model_validate({"source": source, "total": 50_000_000, "watts": 25})
        measurements.heard(Heartbeat(node="a", boot=boot, energy=report), world.now)
    database = Database(world.uow, world.clock)
    await note_energy(database, measurements.energy)
    database.close()
    found = await seen(world, measurements)
    assert found["ces_node_energy_joules_total", "a", "measured"] == 50
    assert found["ces_node_energy_joules_total", "a", "modelled"] == 50
    assert found["ces_node_power_watts", "a"] == 25
    assert not [key for key in found if key[0].startswith(("ces_node_energy", "ces_node_power")) and key[1] == "b"]
