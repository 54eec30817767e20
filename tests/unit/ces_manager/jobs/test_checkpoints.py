"""Where checkpoints lie, by what nodes claim: who is believed, what a late writer reaches, what moves with rank 0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history_actors import malleable
from manager_world import World, sqlite_url
from meshed_world import meshed_world
from pydantic import ValidationError

from ces_common.messages.checkpoints import (
    BegunFrom,
    Checkpoint,
    CheckpointReport,
    HeldCopies,
    JobCheckpoints,
    PackedCheckpoint,
)
from ces_common.messages.reports import Status
from ces_common.states import JobState
from ces_manager.jobs import checkpoints
from ces_manager.nodes import operations

NODES = ["a", "b", "c"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with meshed_world(sqlite_url(tmp_path), *NODES, bandwidth="50Mbit", cpu=1000) as made:
        yield made


@pytest.fixture
def job(world: World) -> str:
    """Of two workers, on a and b."""
    made = world.submit(malleable(low=2))
    world.run(made, ["a", "b"])
    return made


def of(digit: str, attempt: int = 1, incarnation: int = 1) -> Checkpoint:
    return Checkpoint(attempt=attempt, incarnation=incarnation, name=f"step-{digit}", size=9, digest=digit * 64)


def told(world: World, node: str, **said: Any) -> bool:
    """A node says this, and no more; returns whether it was news."""
    report = CheckpointReport.model_validate({"node": node, **said})
    with world.uow.read() as tx:
        news = checkpoints.with_news(tx, [report])
    world.write(lambda tx: checkpoints.take_reports(tx, [report]))
    return bool(news)


def packed(world: World, node: str, job: str, checkpoint: Checkpoint) -> bool:
    return told(world, node, packed=[PackedCheckpoint(job=job, checkpoint=checkpoint)])


def held(world: World, node: str, job: str, *digits: str) -> bool:
    return told(world, node, held=[HeldCopies(job=job, digests=[digit * 64 for digit in digits])])


def known(world: World, job: str) -> JobCheckpoints:
    return world.job(job).checkpoints


def stored(world: World, job: str) -> dict[str, list[str]]:
    return {each.digest[0]: each.nodes for each in known(world, job).stored}


def kinds(world: World) -> list[str]:
    return [kind for _, kind in world.events() if kind.startswith("checkpoint.")]


def moves(world: World, job: str, places: list[str]) -> None:
    """The job is placed again, elsewhere, and its network is ready."""
    world.confirm(job)
    assert world.job(job).state is JobState.QUEUED
    assert world.commit(world.propose(job, places)) is None
    world.network(job)


def drain(world: World, node: str, job: str, places: list[str]) -> None:
    world.write(lambda tx: operations.drain(tx, node))
    moves(world, job, places)


def test_copies_are_counted_once_a_node_of_the_job_has_said_so(world: World, job: str) -> None:
    assert packed(world, "a", job, of("1"))
    assert not packed(world, "a", job, of("1")), "it says so again and again"
    assert stored(world, job) == {"1": []}
    assert not held(world, "c", job, "1"), "it has no task of the job"
    assert held(world, "b", job, "1")
    assert not held(world, "b", job, "1")
    assert stored(world, job) == {"1": ["b"]}
    assert held(world, "b", job)
    assert stored(world, job) == {"1": []}, "it holds it no more"


def test_the_newest_counts_and_as_many_older_ones_as_have_copies(world: World, job: str) -> None:
    for digit in "12345":
        world.wait(5)
        packed(world, "a", job, of(digit))
        if digit != "4":
            held(world, "b", job, "1", "2", "3", "5")
    assert stored(world, job) == {"5": ["b"], "3": ["b"], "2": ["b"]}


def test_one_that_packs_without_end_is_heard_every_five_seconds(world: World, job: str) -> None:
    assert packed(world, "a", job, of("1"))
    packed(world, "a", job, of("2"))
    assert stored(world, job) == {"1": []}
    world.wait(5)
    packed(world, "a", job, of("2"))
    assert stored(world, job) == {"2": []}
    again = [PackedCheckpoint(job=job, checkpoint=of(digit)) for digit in "34"]
    with pytest.raises(ValidationError, match="each job may be named once"):
        CheckpointReport(node="a", packed=again)


def test_only_the_node_of_the_first_task_is_believed(world: World, job: str) -> None:
    assert not packed(world, "b", job, of("1"))
    assert not packed(world, "c", job, of("1"))
    assert not packed(world, "a", job, of("1", incarnation=2)), "it has not begun so often"
    assert not packed(world, "a", job, of("1", attempt=2))
    assert not packed(world, "a", "no-such-job", of("1"))
    assert stored(world, job) == {}


def test_a_late_writer_replaces_nothing(world: World, job: str) -> None:
    """The first attempt's node is cut off, the job goes on elsewhere; then the node is heard again."""
    packed(world, "a", job, of("1"))
    held(world, "b", job, "1")
    drain(world, "a", job, ["b", "c"])
    world.wait(5)
    assert packed(world, "a", job, of("2")), "the second attempt has not begun yet"
    world.tell(job, "running")
    assert not packed(world, "a", job, of("3")), "it has begun"
    assert packed(world, "b", job, of("4", attempt=2))
    for late in (of("5"), of("5", attempt=2), of("5", attempt=3)):
        assert not packed(world, "a", job, late)
    assert stored(world, job) == {"4": [], "1": ["b"]}


def test_an_earlier_incarnation_replaces_nothing(world: World, job: str) -> None:
    world.tell(job, "exited", "w-0", exit_code=1)
    assert world.job(job).allocations[0].incarnation == 2
    assert packed(world, "a", job, of("2", incarnation=2))
    assert not packed(world, "a", job, of("1", incarnation=1))


def test_a_drained_node_is_asked_for_what_lies_there_until_the_job_has_begun(world: World, job: str) -> None:
    drain(world, "a", job, ["c", "b"])
    assert (world.job(job).checkpoint_node, known(world, job).restoring, known(world, job).former) == ("c", True, "a")
    world.tell(job, "running")
    assert (known(world, job).restoring, known(world, job).former) == (False, None)


@pytest.mark.parametrize("ended", [{"exit_code": 1}, {"exit_code": 0}])
def test_a_first_task_that_was_only_heard_to_end_has_begun(world: World, job: str, ended: dict[str, int]) -> None:
    """What it has written since lies there, and the next incarnation goes on with that."""
    drain(world, "a", job, ["c", "b"])
    assert known(world, job).restoring
    world.tell(job, "exited", "w-0", **ended)
    assert (known(world, job).restoring, known(world, job).former) == (False, None)


def test_one_that_never_began_goes_on_with_what_there_was(world: World, job: str) -> None:
    drain(world, "a", job, ["c", "b"])
    world.tell(job, "exited", "w-1", exit_code=1)
    assert (known(world, job).restoring, known(world, job).former) == (True, "a")


def test_a_lost_node_is_not_asked(world: World, job: str) -> None:
    world.wait(40)
    world.beat("b", "c")
    world.expire()
    world.wait(400)
    world.beat("b", "c")
    world.expire()
    assert next(node.state for node in world.snapshot().nodes if node.name == "a") == "unreachable"
    world.report(Status(node="b", generation=world.snapshot().version, workers=[]))
    assert world.job(job).state is JobState.QUEUED
    assert world.commit(world.propose(job, ["c", "b"])) is None
    assert (known(world, job).restoring, known(world, job).former) == (True, None)


@pytest.mark.parametrize(
    ("before", "node", "reachable", "after"),
    [
        ({}, "a", True, {}),
        ({}, "b", True, {"restoring": True, "former": "a"}),
        ({}, "b", False, {"restoring": True}),
        ({"restoring": True, "former": "x"}, "b", True, {"restoring": True, "former": "x"}),
        ({"restoring": True, "former": "x"}, "a", True, {"restoring": True, "former": "x"}),
        ({"restoring": True, "former": "x"}, "x", True, {}),
        ({"restoring": True}, "a", True, {"restoring": True}),
    ],
)
def test_where_the_newest_lies_is_not_forgotten_before_the_first_task_has_begun(
    before: dict[str, Any], node: str, reachable: bool, after: dict[str, Any]
) -> None:
    """It was committed to a last."""
    found = checkpoints.moved(JobCheckpoints.model_validate(before), "a", node, reachable)
    assert found == JobCheckpoints.model_validate(after)


def test_what_it_begins_from_is_announced_once(world: World, job: str) -> None:
    drain(world, "a", job, ["c", "b"])
    begun = BegunFrom(job=job, attempt=2, incarnation=1, source="b", name="step-1", reason="a: gone\0")
    assert not told(world, "b", begun=[begun]), "the first task is not there"
    assert told(world, "c", begun=[begun])
    assert not told(world, "c", begun=[begun])
    assert not told(world, "c", begun=[begun.model_copy(update={"attempt": 1})])
    assert kinds(world) == ["checkpoint.restored"]


def test_nothing_is_noted_of_a_job_that_is_over(world: World, job: str) -> None:
    world.cancel(job)
    world.confirm(job)
    assert not packed(world, "a", job, of("1"))
    assert kinds(world) == []
