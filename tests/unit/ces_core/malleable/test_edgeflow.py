"""EdgeFlow: who goes to an edge server, by each rule and both readings of the third."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from malleable_jobs import job, jobs, moment, running

from ces_core.malleable.edgeflow import EdgeFlow, Reading
from ces_core.malleable.elasticflow import ElasticFlow
from ces_core.malleable.model import MalleableJob

READINGS: tuple[Reading, ...] = ("none", "overflow", "sacrifice", "donate")


def test_who_is_on_an_edge_server_stays() -> None:
    on_edge = running(job("a", 100.0, 60.0), server=3)  # would miss at half the speed, and not in the cloud
    found = EdgeFlow(10.0)(moment(on_edge, servers={3: 0.5, 4: 1.0}))
    assert (found.servers, found.sizes) == ({"a": 3}, {})


def test_a_job_whose_server_is_taken_back_goes_on_elsewhere() -> None:
    on_edge = running(job("a", 100.0, 300.0), server=3)
    assert EdgeFlow(10.0)(moment(on_edge, servers={4: 0.5})).servers == {"a": 4}
    assert EdgeFlow(10.0)(moment(on_edge)).sizes == {"a": 4}


def test_of_two_displaced_the_one_with_less_slack_has_the_first_choice() -> None:
    loose, urgent = running(job("loose", 100.0, 800.0), server=1), running(job("urgent", 100.0, 300.0), server=2)
    assert EdgeFlow(10.0)(moment(loose, urgent, gpus=1, servers={7: 0.5})).servers == {"urgent": 7}


def test_while_gpus_are_free_jobs_that_can_afford_it_go_to_the_edge() -> None:
    """At half the speed 100 iterations take 200 s: in time for the one, not for the other."""
    can, cannot = running(job("can", 100.0, 250.0)), running(job("cannot", 100.0, 150.0))
    found = EdgeFlow(10.0)(moment(can, cannot, servers={0: 0.5, 1: 0.5}))
    assert found.servers == {"can": 0}
    assert found.sizes == {"cannot": 4}


def test_what_does_not_fit_into_memory_stays_in_the_cloud() -> None:
    found = EdgeFlow(10.0)(moment(running(job("a", 100.0, 250.0, memory=1.5)), servers={0: 0.5}))
    assert found.servers == {}


def test_who_is_in_time_on_the_edge_donates_its_gpus() -> None:
    """The first leaves two for the second, which needs all four; the first would be in time on the edge."""
    able, tight = running(job("able", 30.0, 40.0), 1), running(job("tight", 190.0, 50.0), 2)
    assert EdgeFlow(10.0, "none", False)(moment(able, tight)).sizes == {"able": 2, "tight": 2}
    found = EdgeFlow(10.0, "donate", False)(moment(able, tight, servers={0: 1.0}))
    assert (found.servers, found.sizes) == ({"able": 0}, {"tight": 4})


def test_who_is_late_anyway_is_sacrificed() -> None:
    """The hopeless job would have two of the three GPUs until its deadline, and the other would be late with it."""
    hopeless, other = running(job("hopeless", 1000.0, 50.0), 2), running(job("other", 100.0, 60.0), 1)
    assert EdgeFlow(10.0, "none", False)(moment(hopeless, other, gpus=3)).sizes == {"hopeless": 2, "other": 1}
    found = EdgeFlow(10.0, "sacrifice", False)(moment(hopeless, other, gpus=3, servers={0: 0.5}))
    assert (found.servers, found.sizes) == ({"hopeless": 0}, {"other": 2})


def test_only_what_would_be_refused_overflows() -> None:
    full = running(job("full", 200.0, 50.0), 4)
    found = EdgeFlow(10.0, "overflow")(moment(full, running(job("new", 20.0, 50.0)), servers={0: 0.5}))
    assert (found.servers, found.refused) == ({"new": 0}, frozenset())


@given(jobs(6))
def test_without_edge_servers_it_is_elasticflow(found: list[MalleableJob]) -> None:
    now = moment(*(running(one) for one in found), gpus=8, now_s=120.0)
    for reading in READINGS:
        assert EdgeFlow(10.0, reading)(now) == replace(ElasticFlow(10.0)(now), least={}, ends={})


@pytest.mark.parametrize("reading", READINGS)
@given(jobs(6), st.dictionaries(st.integers(0, 5), st.floats(0.1, 1.0), max_size=4))
def test_one_place_for_each_and_no_more_than_there_is(
    reading: Reading, found: list[MalleableJob], servers: dict[int, float]
) -> None:
    for admission in (True, False):
        decision = EdgeFlow(10.0, reading, admission)(
            moment(*(running(one) for one in found), gpus=4, now_s=120.0, servers=servers)
        )
        assert sum(decision.sizes.values()) <= 4
        assert not decision.sizes.keys() & decision.servers.keys()
        assert len(set(decision.servers.values())) == len(decision.servers)
        assert set(decision.servers.values()) <= set(servers)
        assert not decision.refused & (decision.sizes.keys() | decision.servers.keys())
