"""Cards of nodes: a plan names them, and they are one job's at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from history_actors import malleable
from manager_world import World, ring, sqlite_url
from meshed_world import meshed_world
from world_audit import findings

from ces_common.jobfile import JobFile
from ces_common.states import JobState
from ces_manager.plans.residual import held_on_nodes, taken_cards


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two nodes with two cards each; what happened is audited twice."""
    with meshed_world(sqlite_url(tmp_path), "a", "b", cpu=4000, gpu=2) as made:
        yield made
        assert findings(made) == []


def on_gpu(name: str, gpu: int = 1, **more: object) -> JobFile:
    return ring(name, tasks=1, gpu=gpu, **more)


def cards(world: World, job: str) -> list[list[str]]:
    return [each.cards for each in world.job(job).allocations]


def taken(world: World, node: str = "a") -> set[str]:
    with world.uow.read() as tx:
        return set(taken_cards(tx, [node])[node])


def gpus(world: World, node: str = "a") -> int:
    with world.uow.read() as tx:
        return held_on_nodes(tx)[node][2]


def test_two_jobs_on_one_node_have_different_cards_and_a_third_has_none(world: World) -> None:
    first, second, third = (world.submit(on_gpu(f"j{i}")) for i in range(3))
    for job in (first, second):
        assert world.commit(world.propose(job, ["a"])) is None
    assert (cards(world, first), cards(world, second)) == ([["gpu0"]], [["gpu1"]])
    assert world.commit(world.propose(third, ["a"])) == "node a has 0 GPUs left, the plan asks for 1"


def test_a_plan_may_not_name_what_is_not_there_or_anothers_or_too_few(world: World) -> None:
    holder, job = world.submit(on_gpu("holder")), world.submit(on_gpu("asks"))
    world.run(holder, ["a"])
    plan = world.propose(job, ["a"])

    def why(**named: list[str]) -> str | None:
        given = {f"w-{key[1:]}": ids for key, ids in named.items()}
        return world.commit(plan.model_copy(update={"cards": given}))

    assert why(w0=["gpu0"]) == "card gpu0 of node a, which the plan gives to w-0, is another job's"
    assert why(w0=["gpu7"]) == "node a has no card gpu7, which the plan gives to w-0"
    assert why() == "w-0 asks for 1 GPUs, the plan names 0 cards for it"
    assert why(w0=["gpu1", "gpu0"]) == "w-0 asks for 1 GPUs, the plan names 2 cards for it"
    assert why(w0=["gpu1"], w1=["gpu0"]) == "the plan gives cards to w-1, which is no task of the job"
    assert why(w0=["gpu1"]) is None
    pair = world.submit(ring("pair", gpu=1, tasks=2))
    plan = world.propose(pair, ["b"])
    assert (
        world.commit(plan.model_copy(update={"cards": {"w-0": ["gpu0"], "w-1": ["gpu0"]}}))
        == "the plan gives card gpu0 of node b to w-0 and to w-1"
    )


def test_a_card_is_free_once_its_worker_is_surely_gone(world: World) -> None:
    job = world.submit(on_gpu("j", gpu=2))
    world.run(job, ["a"])
    world.cancel(job)
    assert taken(world) == {"gpu0", "gpu1"}, "until its agent says that nothing runs there"
    world.confirm(job)
    assert taken(world) == set()


def test_a_suspended_job_keeps_its_cards_and_a_stopped_one_gives_them_back(world: World) -> None:
    frozen, stopped = (
        world.submit(on_gpu("f", priority=10, preemption="suspend")),
        world.submit(on_gpu("s", priority=10)),
    )
    for job in (frozen, stopped):
        world.run(job, ["a"])
    urgent = world.submit(on_gpu("urgent", priority=90))
    assert world.preempt(urgent, frozen) is None
    assert world.commit(world.propose(urgent, ["a"])) == "node a has 0 GPUs left, the plan asks for 1"
    assert world.preempt(urgent, stopped, how="stop") is None
    world.confirm(stopped)
    assert world.commit(world.propose(urgent, ["a"])) is None
    assert cards(world, urgent) == [["gpu1"]]
    assert world.commit(world.go_on(frozen)) is None
    assert (cards(world, frozen), world.job(frozen).state) == ([["gpu0"]], JobState.RUNNING)


def test_a_worker_that_starts_again_in_its_place_has_the_same_card(world: World) -> None:
    job = world.submit(on_gpu("j", restart={"scope": "task", "max": 2}))
    world.run(job, ["a"])
    before = cards(world, job)
    world.tell(job, "exited", exit_code=1)
    assert world.job(job).allocations[0].incarnation == 2
    assert cards(world, job) == before == [["gpu0"]]


def test_a_job_that_goes_to_another_size_uses_its_own_cards_again(world: World) -> None:
    other = world.submit(on_gpu("other"))
    world.run(other, ["b"])
    job = world.submit(malleable(low=1, high=3, gpu=1))
    world.run(job, ["a"])
    assert world.resize(job, 3, ["a", "a", "b"]) is None
    assert (taken(world), taken(world, "b")) == ({"gpu0", "gpu1"}, {"gpu0", "gpu1"})
    assert (gpus(world), gpus(world, "b")) == (2, 2)
    world.confirm(job)
    assert cards(world, job) == [["gpu0"], ["gpu1"], ["gpu1"]]
    assert (gpus(world), gpus(world, "b")) == (2, 2)


def test_what_is_held_for_another_size_is_counted_by_cards_and_not_by_numbers(world: World) -> None:
    """A plan may name other cards than the job has: then it holds both until the former are given back."""
    job = world.submit(malleable(low=1, high=2, gpu=1))
    world.run(job, ["a"])
    record = world.job(job)
    assert record.spec is not None
    assert cards(world, job) == [["gpu0"]]
    where = {"w-0": "a", "w-1": "b"}
    world.free_cards = lambda *_: {"w-0": ["gpu1"], "w-1": ["gpu0"]}  # type: ignore[method-assign]
    assert world.resize(job, 2, list(where.values())) is None
    assert taken(world) == {"gpu0", "gpu1"}
    assert gpus(world) == 2
    world.confirm(job)
    assert (cards(world, job), taken(world), gpus(world)) == ([["gpu1"], ["gpu0"]], {"gpu1"}, 1)
