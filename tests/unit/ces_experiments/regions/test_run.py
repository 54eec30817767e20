"""Runs of a small world in every way, by the federation's own code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ces_core.model.parts import Task
from ces_core.model.problem import Cluster
from ces_core.registry import get_solver
from ces_experiments.regions.books import Asked
from ces_experiments.regions.drawn import HomedJob, Shape, World, draw
from ces_experiments.regions.played import ANSWER_S, Course, Tally
from ces_experiments.regions.run import WAYS, Terms, Way, covered, figures, play
from ces_federation.owner import LOOK_S

SHAPE = Shape(regions=3, nodes=4, jobs=12, load=1.2, homes="uneven", regime="tight", tasks=(1, 2, 3), duration_s=120.0)
TERMS = Terms(patience_s=100.0, wire_s=0.02)
SOLVER = get_solver("least-allocated")
TIMES = ("decision_ms", "decision_p99_ms", "solver_ms", "choice_us", "run_cpu_s")


@pytest.fixture(scope="module")
def world() -> World:
    return draw(SHAPE, 3)


def played(world: World, way: str | Way, terms: Terms = TERMS) -> dict[str, Any]:
    return play(world, WAYS[way] if isinstance(way, str) else way, SOLVER, terms, 3)


def test_the_same_seed_has_the_same_course(world: World) -> None:
    one, again = played(world, "regions"), played(world, "regions")
    assert {key: value for key, value in one.items() if key not in TIMES} == {
        key: value for key, value in again.items() if key not in TIMES
    }


def test_regions_that_take_each_others_jobs_run_more_of_them(world: World) -> None:
    alone, together = played(world, "alone"), played(world, "regions")
    assert alone["elsewhere"] == 0.0
    assert together["elsewhere"] > 0.1
    assert together["accepted"] > alone["accepted"]
    assert "messages" not in alone


@pytest.mark.parametrize("way", WAYS)
def test_every_way_comes_to_its_end(world: World, way: str) -> None:
    found = played(world, way)
    assert 0.2 < found["accepted"] <= 1
    assert 0 <= found["wait_s"] <= TERMS.patience_s
    assert 0 <= found["satisfaction"] <= 1


def test_one_job_that_leaves_says_what_the_protocol_says(world: World) -> None:
    """Its home is full for a while, and there are two others: two bids, a hold, a commit, and their answers."""
    first, second = (job.timed for job in world.jobs[:2])
    home = world.regions["r1"]
    filled = replace(first, arrival_s=0.0, duration_s=500.0, tasks=filling(home), flows=())
    full = HomedJob(filled, "r1", world.jobs[0].file)
    leaves = HomedJob(replace(second, arrival_s=10.0, duration_s=50.0), "r1", world.jobs[1].file)
    found = played(World(world.regions, world.whole, world.parts, [full, leaves]), "regions")
    assert found["elsewhere"] == 0.5
    assert (found["bids"], found["offers"], found["refused"]) == (2, 1, 0)
    assert found["messages"] == 2 * (2 + 1 + 1)
    # a bid, a hold that is asked about twice, a commit: each there and back
    assert found["latency_s"] == pytest.approx(3 * 2 * TERMS.wire_s + 4 * ANSWER_S + LOOK_S)
    assert found["bytes"] > 2000
    slower = played(World(world.regions, world.whole, world.parts, [full, leaves]), "regions", Terms(100.0, 0.5))
    assert slower["latency_s"] == pytest.approx(3 * 2 * 0.5 + 4 * ANSWER_S + LOOK_S)


def filling(cluster: Cluster) -> tuple[Task, ...]:
    """A task for each node, as large as what is free there."""
    free = zip(cluster.topology.nodes, *cluster.node_free[:2].tolist(), strict=True)
    return tuple(Task(f"of-{node}", cpu=cpu, memory=memory, allowed=(node,)) for node, cpu, memory in free)


def test_figures_of_courses() -> None:
    courses = {
        "a": Course("r1", 0.0, 10.0, "r1", 4.0, 10.0, 1.0),
        "b": Course("r1", 0.0, 10.0, "r2", 2.0, 10.0, 0.5),
        "c": Course("r1", 0.0, 60.0),
    }
    tally = Tally()
    tally.offers = [("placed", 0.4), ("no-region", 0.0), ("not-held", 0.2), ("not-decided", 0.2)]
    tally.holds.update({"held": 1, "refused": 3})
    tally.sent("bid", "s" * 10, b"x" * 100)
    found = figures(courses, Asked([0.001, 0.003], screened=4), tally)
    assert (found["accepted"], found["wait_s"], found["satisfaction"], found["elsewhere"]) == (2 / 3, 3.0, 0.75, 0.5)
    assert (found["asks"], found["decision_ms"]) == (2.0, 2.0)
    assert (found["offers"], found["refused"], found["latency_s"], found["messages"]) == (3, 0.75, 0.4, 1)
    assert (found["overtaken"], found["work"]) == (1, 0.25)
    assert found["bytes"] > 110


def test_time_is_counted_once_where_it_overlaps() -> None:
    assert covered([(5, 7), (0, 2), (1, 3), (6, 6.5)]) == 5
    assert covered([]) == 0
