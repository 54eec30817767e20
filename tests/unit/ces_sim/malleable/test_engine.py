"""The clock of malleable jobs, by hand and on random small instances."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from malleable_jobs import LINEAR, job, jobs

from ces_core.malleable.edgeflow import EdgeFlow
from ces_core.malleable.elasticflow import ElasticFlow
from ces_core.malleable.model import MalleableJob
from ces_core.malleable.peers.edf import EarliestDeadlineFirst
from ces_core.malleable.peers.simple import smallest
from ces_core.malleable.policy import Decision, Moment
from ces_sim.malleable.engine import BrokenPolicyError, World, simulate
from ces_sim.malleable.outcome import feasible

FREE = World(4, costs=False)


def test_one_job_at_all_gpus() -> None:
    outcome = simulate([job("a", 100.0, 30.0, arrived_s=3.0)], ElasticFlow(10.0), FREE)
    (fate,) = outcome.fates
    assert (fate.started_s, fate.ended_s, fate.resizes) == (3.0, 28.0, 0)
    assert fate.gpu_s == pytest.approx(100.0)
    assert outcome.satisfied == 1.0


def test_a_start_costs_seconds() -> None:
    """2 s, and 2 s more for the first GPU and each doubling to four."""
    outcome = simulate([job("a", 100.0, 30.0)], ElasticFlow(10.0), World(4))
    (fate,) = outcome.fates
    assert (fate.ended_s, fate.cost_s) == (25.0 + 8.0, 8.0)
    assert not fate.on_time


def test_a_resize_costs_seconds_and_is_counted() -> None:
    """The first has all four until 20 s; then both have two. It made 48, and makes the other 52 at 2, after 6 s."""
    asked = [job("a", 100.0, 1000.0), job("b", 100.0, 1000.0, arrived_s=20.0)]

    def halves(moment: Moment) -> Decision:
        return Decision({each.name: 4 // len(moment.active) for each in moment.active})

    first, second = simulate(asked, halves, World(4)).fates
    assert (first.resizes, first.cost_s) == (1 + 0, 8.0 + 6.0)
    assert first.ended_s == pytest.approx(20 + 6 + 26)
    assert second.resizes == 1
    assert second.cost_s == 6.0 + 8.0


def test_refused_jobs_never_run() -> None:
    outcome = simulate([job("a", 1000.0, 30.0)], ElasticFlow(10.0), FREE)
    assert outcome.fates[0].refused
    assert outcome.figures()["refused"] == 1.0
    assert outcome.satisfied == 0.0


def test_the_edge_runs_at_its_own_speed_and_a_lost_server_is_left() -> None:
    """50 iterations at half a GPU by 100 s, and the other 50 at four GPUs."""
    world = World(4, costs=False, edge=((0.0, frozenset({5})), (100.0, frozenset())), speeds={5: 0.5}, believed=0.5)
    (fate,) = simulate([job("a", 100.0, 300.0)], EdgeFlow(10.0), world).fates
    assert fate.ended_s == pytest.approx(112.5)
    assert (fate.edge_s, fate.crossings) == (100.0, 1)


def test_a_servers_speed_is_known_once_somebody_runs_there() -> None:
    believed: list[dict[int, float]] = []

    def there(moment: Moment) -> Decision:
        believed.append(dict(moment.servers))
        return Decision({}, servers={each.name: 5 for each in moment.active}, until_s=moment.now_s + 10)

    world = World(1, costs=False, edge=((0.0, frozenset({5})),), speeds={5: 0.2}, believed=0.5)
    simulate([job("a", 3.0, 300.0)], there, world)
    assert believed == [{5: 0.5}, {5: 0.2}, {5: 0.2}]


def test_gathered_events_wait_but_ends_count_as_they_are() -> None:
    asked = [job("a", 4.0, 300.0), job("b", 4.0, 300.0, arrived_s=2.0)]
    first, second = simulate(asked, smallest, World(4, costs=False, gather_s=60.0)).fates
    assert first.ended_s == 4.0
    assert (second.started_s, second.ended_s) == (60.0, 64.0)


def test_everybody_pays_at_every_look_where_that_is_asked() -> None:
    asked = [job("a", 100.0, 3000.0), job("b", 4.0, 3000.0, arrived_s=50.0)]
    usual, always = (simulate(asked, smallest, World(4, pay_always=pays)).fates[0].cost_s for pays in (False, True))
    assert (usual, always) == (4.0, 4.0 + 2 + 2)


@pytest.mark.parametrize(
    ("decision", "what"),
    [
        (Decision({"a": 4, "b": 1}), "5 GPUs given out, 4 there"),
        (Decision({"a": 1}, servers={"b": 9}), "edge servers"),
        (Decision({"a": 1}, servers={"a": 5}), "both"),
        (Decision({}, servers={"a": 5, "b": 5}), "edge servers"),
        (Decision({}), "wait for ever: a, b"),
    ],
)
def test_what_cannot_be_is_an_error(decision: Decision, what: str) -> None:
    world = World(4, edge=((0.0, frozenset({5})),), speeds={5: 0.5}, believed=0.5)
    with pytest.raises(BrokenPolicyError, match=what):
        simulate([job("a", 100.0), job("b", 100.0)], lambda moment: decision, world)


def test_only_who_has_just_come_can_be_refused() -> None:
    def late(moment: Moment) -> Decision:
        return Decision({"b": 1}) if moment.arrived == {"b"} else Decision({"a": 1}, frozenset({"b"} - moment.arrived))

    with pytest.raises(BrokenPolicyError, match="refused after"):
        simulate([job("a", 100.0), job("b", 100.0, arrived_s=5.0)], late, World(4))


@settings(max_examples=1000)
@given(jobs(6), st.sampled_from([1, 4, 8]), st.sampled_from([1.0, 10.0, 60.0]))
def test_admitted_jobs_keep_their_deadlines_at_no_cost(found: list[MalleableJob], gpus: int, slot: float) -> None:
    outcome = simulate(found, ElasticFlow(slot), World(gpus, costs=False))
    assert all(fate.refused or fate.on_time for fate in outcome.fates)
    assert outcome.satisfied <= feasible(found)


@given(jobs(6))
def test_work_is_conserved(found: list[MalleableJob]) -> None:
    """At linear speeds every job has exactly its work in GPU-seconds."""
    alike = [job(one.name, one.work, one.deadline_s, LINEAR, arrived_s=one.arrived_s) for one in found]
    for policy in (EarliestDeadlineFirst(), ElasticFlow(10.0, admission=False), smallest):
        for fate in simulate(alike, policy, FREE).fates:
            assert fate.gpu_s == pytest.approx(fate.job.work, rel=1e-6)
            assert fate.ended_s is not None
            assert fate.ended_s >= fate.job.earliest_end_s - 1e-6
