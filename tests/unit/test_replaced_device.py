"""Another device takes a node's place, with a key of its own and nothing of what the one before knew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from run_auditor import judge
from whole_world import CONTROLLERS
from world_actors import Actors
from world_faults import NODES, SLOW_JOB

from ces_manager.errors import Conflict

A_WHILE_S = 10.0
LONG_S = 600.0  # longer than any job in these histories outlives its node's lease
QUICK_JOB = {**SLOW_JOB, "fetch_s": 0, "stubborn": False}


@pytest.fixture
def histories() -> Iterator[Actors]:
    made = Actors()
    made.build((1.0, 1.0, 1.0), [])
    yield made
    made.teardown()


def joined_in_the_end(histories: Actors, node: str) -> float:
    """Join as soon as the manager admits the new device; how long that took."""
    waited = 0.0
    while waited < LONG_S:
        try:
            histories.world.join(node)
        except Conflict:
            histories.world.wait(A_WHILE_S)
            waited += A_WHILE_S
        else:
            return waited
    raise AssertionError(f"{node} was never admitted")


def test_what_may_still_run_on_the_device_before_is_not_run_by_the_new_one(histories: Actors) -> None:
    world = histories.world
    histories.bring(QUICK_JOB | {"disconnect": "5m"})
    world.wait(A_WHILE_S)
    assert [run.node for run in world.journal.runs] == ["c"]
    world.replace("c")  # the former one's agent is dead, and its worker lives as long as its job lets it
    waited = joined_in_the_end(histories, "c")
    world.start("c")
    world.wait(120)
    assert judge(world.journal, NODES) == []
    assert waited > 300, "the worker outlived its lease by so much"


def test_what_is_over_is_not_begun_again_by_a_document_of_before(histories: Actors) -> None:
    world = histories.world
    histories.bring(QUICK_JOB)
    world.wait(A_WHILE_S)
    for controller in CONTROLLERS:
        world.kill(controller)
    (worker,) = world.machines["c"].workers.values()
    world.machines["c"].end(worker, 0)
    world.wait(A_WHILE_S)
    assert world.books.ask("SELECT state FROM jobs") == [("succeeded",)]
    world.replace("c")
    assert joined_in_the_end(histories, "c") == 0, "nothing of it holds anything any more"
    world.start("c")
    world.wait(120)
    assert len(world.journal.runs) == 1, "no controller has said yet that it is over"
    assert judge(world.journal, NODES) == []
    for controller in CONTROLLERS:
        world.start(controller)
    world.wait(60)
    assert judge(world.journal, NODES) == []
