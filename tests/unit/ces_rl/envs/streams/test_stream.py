"""Streams decide as the simulator of jobs does, and their copies go on by themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.search.answer import planned
from ces_core.search.diagnosis import SearchTrace
from ces_rl.envs.streams.lookahead import take
from ces_rl.envs.streams.proposals import Attitude, attitudes, hopeless, propose
from ces_rl.envs.streams.stream import MEAN_S, Scenario, Stream, offered
from ces_sim.cluster import simulate

JOBS = 24
SEARCH = attitudes()[1]


@dataclass(frozen=True)
class Quick:
    """The plans that an attitude proposes, as a solver."""

    attitude: Attitude
    name: str = "quick"
    summary: str = "as streams propose"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        if not hopeless(problem):
            found = propose(problem, (self.attitude,))
            if found.there[0]:
                return planned(self.name, problem, found.view, found.states[0])
        return Result(self.name, SearchTrace.of(problem).considered, reason=Reason("packing", proven=False))


def by(attitude: Attitude, stream: Stream) -> Stream:
    while stream.job is not None:
        found = propose(stream.problem, (attitude,))
        take(stream, found, 0 if found.there[0] else 1)
    return stream


@pytest.mark.parametrize("seed", [3, 4])
def test_a_stream_is_decided_as_in_the_simulator(seed: int) -> None:
    cluster, jobs, _ = offered("tight", 1.2, JOBS, seed)
    outcome = simulate(cluster, jobs, Quick(SEARCH), patience_s=MEAN_S)
    stream = by(SEARCH, Stream(Scenario.of(cluster, jobs)))
    started = {fate.job.name: fate.bandwidth_satisfaction for fate in outcome.accepted}
    assert {f"j{job}" for job in stream.satisfaction} == set(started)
    assert 0 < len(started) < JOBS
    for job, satisfaction in stream.satisfaction.items():
        assert satisfaction == pytest.approx(started[f"j{job}"], abs=1e-9)
    waits = sum(fate.waited_s or 0.0 for fate in outcome.accepted)
    assert stream.waited_s == pytest.approx(waits)


def test_who_waits_is_asked_again_when_something_is_free() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, JOBS, 5))
    while not stream.may_wait:
        take(stream, propose(stream.problem, (SEARCH,)), 0)
    waiting, releases = stream.job, stream.releases
    stream.wait()
    asked = []
    while stream.job is not None and stream.releases == releases:
        asked.append(stream.job)
        stream.wait()
    assert waiting not in asked
    assert waiting in stream.waiting or stream.now >= MEAN_S


def test_nobody_waits_for_ever() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, 6, 5))
    while stream.job is not None:
        stream.wait()
    assert stream.satisfaction == {}
    assert stream.waiting == []


def test_what_ends_leaves_exactly_what_was_free() -> None:
    scenario = Scenario.draw("tight", 0.3, 12, 6)
    stream = by(SEARCH, Stream(scenario))
    assert stream.satisfaction
    used = sum(nodes for nodes, _ in stream.held.values()) if stream.held else 0.0
    assert np.allclose(stream.node_used, scenario.cluster.node_used + used)
    assert (stream.node_used <= scenario.cluster.node_capacity * (1 + 1e-9)).all()
    assert (stream.link_used <= scenario.cluster.link_capacity * (1 + 1e-9)).all()


def test_a_copy_changes_nothing_of_the_first() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, JOBS, 7))
    take(stream, propose(stream.problem, (SEARCH,)), 0)
    before = (stream.job, stream.now, stream.served, len(stream.ends), stream.node_used.sum())
    by(SEARCH, stream.copy())
    assert (stream.job, stream.now, stream.served, len(stream.ends), stream.node_used.sum()) == before


def test_a_foreseen_future_has_the_jobs_that_come() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, JOBS, 8))
    arrived = stream.arrived
    near = by(SEARCH, stream.foreseen(3))
    assert near.arrived == arrived + 3
    whole = by(SEARCH, stream.foreseen(JOBS))
    assert whole.satisfaction == by(SEARCH, stream).satisfaction


def test_a_made_up_future_has_other_jobs_and_begins_as_things_are() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, JOBS, 8))
    for _ in range(4):
        take(stream, propose(stream.problem, (SEARCH,)), 0)
    one, other, same = (stream.imagined(6, np.random.default_rng(seed)) for seed in (1, 2, 1))
    assert len(one.kinds) == stream.arrived + 6
    assert one.job == stream.job
    assert (one.node_used == stream.node_used).all()
    assert one.arrivals.tolist() == same.arrivals.tolist() != other.arrivals.tolist()
    assert by(SEARCH, one).satisfaction == by(SEARCH, same).satisfaction
    assert all(end > stream.now for end, _ in other.ends)
