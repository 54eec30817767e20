"""When CES looks at an application by itself, what it asks, and what it makes of the answer. The scheduler is a double
that says what each test has it say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from manager_world import World, full_mesh
from memory_bus import MemoryBroker, MemoryBus
from moved_tasks import apart, gone, laid, place, says, state, view
from sqlalchemy import select

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db.tables import EventRow
from ces_common.jobfile import JobFile
from ces_common.messages.adjustments import (
    AdjustmentAnswer,
    AdjustmentProposal,
    AdjustmentQuery,
    LastLook,
    PastMove,
    ProposedChange,
)
from ces_common.messages.api import TopologyFile
from ces_common.messages.moves import MoveAnswer
from ces_common.messages.plans import FlowPlan
from ces_common.messages.reports import Progress
from ces_manager.adjusting.deadline_windows import WINDOW_S
from ces_manager.adjusting.keeper import LEAST_S, RETRY_S, SelfAdjuster
from ces_manager.database import Database
from ces_manager.jobs.task_moves import last_look
from ces_manager.measurements import Measurements

BROKEN = [{"code": "deadline", "message": "loop: 61 ms of 50 ms"}]
CERTIFICATE = {"text": "No adjustment with at most 1 move gains more than 0.", "proven": True, "moves": 1}
GOALS = {"objective": {"balance": 1.0}}


class Scene:
    """A cluster whose scheduler answers with ``answers`` in turn, and then proposes nothing."""

    def __init__(self, world: World, bus: MemoryBus) -> None:
        self.world, self.bus, self.measurements = world, bus, Measurements()
        self.answers: list[AdjustmentAnswer] = []
        self.asked: list[AdjustmentQuery] = []
        self.holds = True
        self.database = Database(world.uow, world.clock)
        self.keeper = SelfAdjuster(self.database, bus, self.measurements, lambda: self.holds)

    async def open(self) -> None:
        await self.bus.serve(subjects.rpc("scheduler", "adjust"), self._adjust, queue="scheduler")
        await self.bus.serve(subjects.rpc("scheduler", "move"), self._move, queue="scheduler")

    async def _adjust(self, message: Message) -> bytes:
        self.asked.append(AdjustmentQuery.model_validate_json(message.data))
        return (self.answers.pop(0) if self.answers else self.says(None)).encode()

    async def _move(self, message: Message) -> bytes:
        return MoveAnswer(version=0, reason="no paths have room").encode()

    def says(self, change: dict[str, Any] | None, broken: list[dict[str, str]] = BROKEN) -> AdjustmentAnswer:
        proposal = AdjustmentProposal.model_validate(
            {
                "version": self.world.snapshot().version,
                "broken": broken,
                "objective": None if broken else 0.5,
                "certificate": CERTIFICATE,
                "adjustment": None if change is None else ProposedChange.model_validate(change),
            }
        )
        return AdjustmentAnswer(proposal=proposal)

    def running(self, name: str = "app", **more: Any) -> str:
        job = self.world.submit(apart(name, **{"adjust": {}} | GOALS | more))
        self.world.run(job, ["a", "b"])
        return job

    def slow_down(self, src: str = "a", dst: str = "b", delay: str = "40ms") -> None:
        file = full_mesh(["a", "b", "c"]).model_dump(mode="json")
        for link in file["links"]:
            if {link["src"], link["dst"]} == {src, dst}:
                link["delay"] = delay
        self.world.put_topology(TopologyFile.model_validate(file))

    async def step(self, seconds: float = 1.0) -> None:
        self.world.wait(seconds)
        await self.keeper.step()

    def last(self, job: str) -> LastLook | None:
        with self.world.uow.read() as tx:
            return last_look(tx, job)


@pytest.fixture
async def scene(world: World) -> AsyncIterator[Scene]:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    made = Scene(world, bus)
    await made.open()
    yield made
    await bus.close()
    made.database.close()


def move_to(node: str, rate: float = 20_000_000, **more: Any) -> dict[str, Any]:
    """Of w-1, which is on b, with both flows beside it."""
    flows = [
        {"src": "w-0", "dst": "w-1", "bandwidth": rate, "path": ["a", node]},
        {"src": "w-1", "dst": "w-0", "bandwidth": rate, "path": [node, "a"]},
    ]
    moves = [{"task": "w-1", "src": "b", "dst": node, "seconds": 3, "requests": 6}]
    change = {"step": "moves", "moves": moves, "objective": 0.6, "cost": 0.01, "disturbance": 6, "flows": flows}
    return change | {"assignments": {"w-0": "a", "w-1": node}} | more


async def test_nothing_is_asked_while_nothing_changes(scene: Scene) -> None:
    scene.running()
    for _ in range(3):
        await scene.step(WINDOW_S)
    assert scene.asked == []


async def test_a_job_whose_file_does_not_say_it_is_left_alone(scene: Scene) -> None:
    scene.running(adjust=None)
    await scene.step()
    scene.slow_down()
    await scene.step()
    assert scene.asked == []


async def test_a_slower_link_leads_to_a_look_and_the_look_to_a_move(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    assert [(query.job, query.moves) for query in scene.asked] == [(job, 3)]
    move = view(scene.world, job)
    assert (move.task, move.source, move.destination) == ("w-1", "b", "c")
    assert move.why == "link a -> b has changed; link b -> a has changed"
    assert [(flow.src, flow.rate) for flow in scene.world.job(job).moving.reserved] == [  # type: ignore[union-attr]
        ("w-0", 20_000_000),
        ("w-1", 20_000_000),
    ]
    told = scene.last(job)
    assert told is not None
    assert (told.why, told.outcome, told.left) == (move.why, "w-1 moves from b to c", None)


async def test_while_a_task_moves_nothing_is_asked_and_then_its_new_place_is_news(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    scene.slow_down("a", "c")
    await scene.step(LEAST_S)
    assert len(scene.asked) == 1
    old = place(scene.world, job, "w-1")
    laid(scene.world, job)
    gone(scene.world, old)
    says(scene.world, place(scene.world, job, "w-1"), "running")
    assert state(scene.world, job) == "done"
    await scene.step(LEAST_S)
    assert len(scene.asked) == 2
    told = scene.last(job)
    assert told is not None
    assert "its place has changed" in told.why
    assert told.outcome.startswith("it stays as it is: loop: 61 ms of 50 ms; No adjustment")


async def test_rates_and_paths_are_set_where_that_is_all(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    flows = [{"src": "w-0", "dst": "w-1", "bandwidth": 30_000_000.7, "path": ["a", "c", "b"]}]
    flows += [{"src": "w-1", "dst": "w-0", "bandwidth": 10_000_000, "path": ["b", "a"]}]
    places = {"w-0": "a", "w-1": "b"}
    scene.answers = [scene.says({"step": "paths", "objective": 0.7, "flows": flows, "assignments": places})]
    await scene.step()
    assert {(f.src, f.rate, tuple(f.path)) for f in scene.world.job(job).reserved} == {
        ("w-0", 30_000_000, ("a", "c", "b")),
        ("w-1", 10_000_000, ("b", "a")),
    }
    with scene.world.uow.read() as tx:
        (event,) = tx.session.scalars(select(EventRow).where(EventRow.type == "ces.v1.plan.revised"))
    assert '"cause":"goals"' in event.body
    told = scene.last(job)
    assert told is not None
    assert told.outcome == "1 flow gets another rate or path"


async def test_a_proposal_for_a_state_that_has_passed_is_asked_for_again(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    answer = scene.says(move_to("c"))
    held = scene.world.job(job).reserved[0]
    assert scene.world.revise(job, FlowPlan(src=held.src, dst=held.dst, rate=15_000_000, path=held.path)) is None
    scene.answers = [answer]
    await scene.step()
    assert (len(scene.asked), scene.last(job), scene.world.job(job).moving) == (1, None, None)
    scene.answers = [scene.says(move_to("c"))]
    await scene.step(RETRY_S)
    assert view(scene.world, job).destination == "c"


async def test_without_room_for_the_proposed_paths_others_are_sought(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c", rate=99_000_000))]
    await scene.step()
    told = scene.last(job)
    assert told is not None
    assert told.outcome == "it stays as it is: w-1 cannot be moved to c: no paths have room"


async def test_where_nothing_is_broken_each_move_must_be_worth_it_alone(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    both = move_to("c")
    both["moves"] = [*both["moves"], {"task": "w-0", "src": "a", "dst": "c", "seconds": 3, "requests": 6}]
    scene.answers = [scene.says(both, broken=[]), scene.says(None, broken=[])]
    await scene.step()
    assert [query.moves for query in scene.asked] == [3, 1]
    assert scene.world.job(job).moving is None


async def test_of_several_moves_that_end_what_is_broken_the_first_is_made(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    both = move_to("c")
    both["moves"] = [*both["moves"], {"task": "w-0", "src": "a", "dst": "c", "seconds": 3, "requests": 6}]
    scene.answers = [scene.says(both)]
    await scene.step()
    assert [query.moves for query in scene.asked] == [3]
    told = scene.last(job)
    assert told is not None
    assert (
        told.outcome == "it stays as it is: w-1 cannot be moved to c: no paths have room; w-0 cannot be moved to c: "
        "no paths have room"
    )


async def test_who_is_busy_is_asked_again(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    scene.answers = [AdjustmentAnswer(busy=True, refusal="another job is being looked at"), scene.says(move_to("c"))]
    await scene.step()
    assert scene.last(job) is None
    await scene.step()
    assert len(scene.asked) == 1
    await scene.step(RETRY_S)
    assert view(scene.world, job).destination == "c"


async def test_an_application_is_looked_at_every_ten_seconds_at_most(scene: Scene) -> None:
    scene.running()
    await scene.step()
    for i in range(4):
        scene.slow_down(delay=f"{40 + i}ms")
        await scene.step(LEAST_S / 2)
    assert len(scene.asked) == 2


async def test_deadlines_missed_in_three_windows_lead_to_a_look(scene: Scene) -> None:
    camera = {"name": "camera", "command": ["true"], "constraints": {"user": "cam"}}
    file = {"name": "app", "tasks": [camera], "users": [{"name": "cam", "at": {"node": "a"}}], "adjust": {}}
    job = scene.world.submit(JobFile.model_validate(file | GOALS | {"restart": {"scope": "task"}}))
    scene.world.run(job, ["a"])
    (allocation,) = scene.world.job(job).allocations
    for i in range(5):
        data = {"requests": {"loop": {"answers": 100 * i, "late": 50 * i, "lost": 0}}}
        told = Progress(node="a", job=job, task="camera-0", allocation=allocation.id, data=data)
        scene.measurements.progressed(told, scene.world.now)
        await scene.step(WINDOW_S)
    assert len(scene.asked) == 1
    seen = scene.last(job)
    assert seen is not None
    assert seen.why == "loop has missed its deadline in 3 windows of 10 s"


async def test_the_terms_are_those_of_the_file_and_moves_that_did_not_pay_count_double(scene: Scene) -> None:
    adjust = {"budget": 100, "reserve": 40, "cooldown": "2m", "least_gain": 0.01}
    job = scene.running(adjust=adjust)
    await scene.step()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c", cost=0.3))]
    await scene.step()
    (first,) = scene.asked
    terms = first.terms
    assert (terms.budget, terms.reserve, terms.cooldown_s, terms.least_gain) == (100, 40, 120, 0.01)
    assert (first.past, terms.remaining_s) == ([], 3600)
    seen = scene.last(job)
    assert seen is not None
    assert seen.left == 94
    old = place(scene.world, job, "w-1")
    laid(scene.world, job)
    gone(scene.world, old)
    says(scene.world, place(scene.world, job, "w-1"), "exited")  # it cannot start there, and goes back
    assert state(scene.world, job) == "returning"
    says(scene.world, place(scene.world, job, "w-1"), "running")
    assert state(scene.world, job) == "kept"
    scene.slow_down("a", "c")
    await scene.step(LEAST_S)
    assert [(past.requests, past.paid) for past in scene.asked[-1].past] == [(6, False)]
    seen = scene.last(job)
    assert seen is not None
    assert seen.left == 88


async def test_a_move_pays_once_its_gain_has_lasted(scene: Scene) -> None:
    job = scene.running()
    await scene.step()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c", cost=0.1))]  # of a gain of 0.6: a sixth of an hour
    await scene.step()
    old = place(scene.world, job, "w-1")
    laid(scene.world, job)
    gone(scene.world, old)
    says(scene.world, place(scene.world, job, "w-1"), "running")
    paid: list[PastMove] = []
    for seconds in (590, 20):
        await scene.step(seconds)
        scene.slow_down("a", "c", delay=f"{seconds}us")
        await scene.step()
        paid += scene.asked[-1].past
    assert [past.paid for past in paid] == [None, True]


async def test_whoever_takes_over_knows_of_no_change_before(scene: Scene) -> None:
    scene.running()
    await scene.step()
    scene.holds = False
    scene.slow_down()
    await scene.step()
    scene.holds = True
    await scene.step()
    await scene.step()
    assert scene.asked == []


async def test_without_a_scheduler_it_waits(world: World) -> None:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    scene = Scene(world, bus)
    job = scene.running()
    await scene.step()
    scene.slow_down()
    await asyncio.wait_for(scene.step(), 10)
    assert scene.last(job) is None
    await scene.open()
    await scene.step(RETRY_S)
    assert scene.last(job) is not None
    await bus.close()
    scene.database.close()
