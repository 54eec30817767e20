"""What finished jobs teach, in the database, and profiles of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from manager_world import World, ring
from sqlalchemy import select

from ces_common.db.tables import NodeRow
from ces_common.db.work_tables import LearnedWorkRow
from ces_common.messages.reports import Heartbeat, Progress, WorkerUsage
from ces_common.messages.scores import Kind, Measured, Measurement
from ces_common.messages.work import JobProfile, LearnedWork
from ces_common.scores import REFERENCE
from ces_manager.database import Database
from ces_manager.errors import NotFound
from ces_manager.jobs.job_views import job_view
from ces_manager.measurements import Measurements
from ces_manager.work import views
from ces_manager.work.notes import note_work
from ces_manager.work_meter import ENDED

RATE = 10  # steps/s


@pytest.fixture
def measurements() -> Measurements:
    return Measurements()


def measured(world: World, node: str, others: float = 0.0, **speeds: float) -> None:
    def put(tx: object) -> None:
        kinds: Mapping[Kind, float] = {kind: speed * REFERENCE[kind] for kind, speed in speeds.items()}  # type: ignore[misc]
        told = [
            Measurement(kind=kind, rates=[rate] * 5, per_cpu_s=rate, others=others, source="a test")
            for kind, rate in kinds.items()
        ]
        row = tx.session.get(NodeRow, node)  # type: ignore[attr-defined]
        row.measured = Measured(at=world.now, measurements=told)

    world.write(put)


def placed(world: World, *nodes: str, name: str = "ring") -> tuple[str, dict[str, str]]:
    """A job that runs, and its allocations by node."""
    job = world.submit(ring(name, tasks=len(nodes), tenant="red"))
    assert world.commit(world.propose(job, nodes)) is None
    world.network(job)
    world.tell(job, "running")
    return job, {each.node: each.id for each in world.job(job).allocations}


def works(
    world: World, measurements: Measurements, job: str, where: Mapping[str, str], cores: Mapping[str, float]
) -> None:
    """Its workers do RATE steps/s for a minute, with so many cores on each node."""
    for second in range(1, 61):
        for rank, (node, allocation) in enumerate(where.items()):
            line = Progress(
                node=node, allocation=allocation, job=job, task=f"w-{rank}", incarnation=1,
                seen_s=second, data={"step": second * RATE},
            )  # fmt: skip
            measurements.progressed(line, world.now + timedelta(seconds=second))
            usage = WorkerUsage(allocation=allocation, cpu=1, memory=1, cpu_s=second * cores[node])
            measurements.heard(Heartbeat(node=node, boot="b", workers=[usage]), world.now + timedelta(seconds=second))


async def noted(world: World, measurements: Measurements) -> dict[str, LearnedWork]:
    database = Database(world.uow, world.clock)
    ended = measurements.work.ended(world.now + timedelta(seconds=60) + ENDED)
    await note_work(database, measurements.work, ended)
    database.close()
    with world.uow.read() as tx:
        return {row.name: row.learned for row in tx.session.scalars(select(LearnedWorkRow))}


def finish(world: World, job: str) -> None:
    world.cancel(job)
    world.confirm(job)


def profile(world: World, measurements: Measurements, job: str, *nodes: str) -> JobProfile:
    with world.uow.read() as tx:
        return views.job_profile(tx, job, measurements.work, nodes)


async def test_each_finished_job_teaches_and_is_what_the_former_ones_are_judged_by(
    world: World, measurements: Measurements
) -> None:
    measured(world, "a", integer=1.0, memory=1.0)
    measured(world, "b", integer=2.0, memory=0.5)
    job, where = placed(world, "a")
    works(world, measurements, job, where, {"a": 0.5})
    assert await noted(world, measurements) == {}, "it runs"
    finish(world, job)
    (first,) = (await noted(world, measurements)).values()
    assert (first.runs, first.classes["integer"].work) == (1, pytest.approx(50))
    assert (await noted(world, measurements))["ring"] == first, "once"

    job, where = placed(world, "b")
    works(world, measurements, job, where, {"b": 0.25})
    finish(world, job)
    (second,) = (await noted(world, measurements)).values()
    assert second.runs == 2
    errors = {kind: each.error for kind, each in second.classes.items()}
    assert errors == {"integer": pytest.approx(0), "memory": pytest.approx(3.0)}
    with world.uow.read() as tx:
        assert job_view(tx, job, measurements).work_error == pytest.approx(0)
    (group,) = profile(world, measurements, job, "a").groups
    assert (group.group, group.runs, group.seen) == ("w", 2, [])
    (there,) = group.predicted
    assert (there.cpu.ms, there.step, there.classes) == (pytest.approx(50), None, ["integer"])
    assert group.doubts == [views.NOT_SEEN]


async def test_what_a_running_job_takes_is_predicted_for_other_nodes(world: World, measurements: Measurements) -> None:
    measured(world, "a", integer=1.0, memory=1.0)
    measured(world, "b", others=0.5, integer=2.0, memory=0.5)
    job, where = placed(world, "a")
    works(world, measurements, job, where, {"a": 0.5})
    (group,) = profile(world, measurements, job, "b", "c").groups
    (seen,) = group.seen
    assert (seen.node, seen.tasks, seen.cores) == ("a", 1, 0.5)
    assert (seen.cpu.ms, seen.step) == (pytest.approx(50), pytest.approx(100))
    (there,) = group.predicted
    assert (there.cpu.low, there.cpu.ms, there.cpu.high) == (pytest.approx(25), pytest.approx(50), pytest.approx(100))
    assert there.step is not None
    assert there.step.low == pytest.approx(50), "it uses all of its half a core"
    assert group.doubts == [
        views.NOT_MEASURED.format("c", "c"),
        views.NOISY.format("b"),
        views.ONE_CLASS_OF_MANY,
        views.WAITS,
    ]


async def test_tasks_of_a_group_are_taken_together_node_by_node(world: World, measurements: Measurements) -> None:
    measured(world, "a", integer=1.0)
    measured(world, "b", integer=2.0)
    job, where = placed(world, "a", "b")
    works(world, measurements, job, where, {"a": 0.4, "b": 0.2})
    (group,) = profile(world, measurements, job).groups
    assert [(each.node, each.cpu.ms) for each in group.seen] == [("a", pytest.approx(40)), ("b", pytest.approx(20))]
    finish(world, job)
    (learned,) = (await noted(world, measurements)).values()
    assert learned.runs == 2, "each node is a run"
    assert learned.classes["integer"].error == pytest.approx(0)


async def test_where_nothing_is_known_nothing_is_said(world: World, measurements: Measurements) -> None:
    job, where = placed(world, "a")
    (group,) = profile(world, measurements, job, "b").groups
    assert (group.predicted, group.classes) == ([], {})
    assert group.doubts == [views.NOT_SEEN, views.NOT_MEASURED.format("b", "b")]
    works(world, measurements, job, where, {"a": 0.5})
    (group,) = profile(world, measurements, job).groups
    assert group.doubts == [views.NOT_MEASURED.format("a", "a")]
    finish(world, job)
    assert await noted(world, measurements) == {}, "its node was never measured"
    with pytest.raises(NotFound, match="no node nowhere"):
        profile(world, measurements, job, "nowhere")
    with pytest.raises(NotFound, match="no job nobody"):
        profile(world, measurements, "nobody")


async def test_what_is_old_is_dropped(world: World, measurements: Measurements) -> None:
    measured(world, "a", integer=1.0)
    job, where = placed(world, "a")
    works(world, measurements, job, where, {"a": 0.5})
    finish(world, job)
    assert await noted(world, measurements)
    world.wait(timedelta(days=31).total_seconds())
    assert world.prune() > 0
    assert await noted(world, measurements) == {}
