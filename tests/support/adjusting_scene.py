"""A manager that changes applications by itself, and a double of the scheduler that says what it is told to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from manager_world import World, direct, full_mesh
from memory_bus import MemoryBus
from moved_tasks import apart, gone, laid, place, says, state

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.messages.adjustments import (
    AdjustmentAnswer,
    AdjustmentProposal,
    AdjustmentQuery,
    LastLook,
    ProposedChange,
)
from ces_common.messages.api import TopologyFile
from ces_common.messages.moves import MoveAnswer, MoveQuery
from ces_manager.adjusting.keeper import LEAST_S, SelfAdjuster
from ces_manager.database import Database
from ces_manager.jobs.task_moves import last_look
from ces_manager.measurements import Measurements

BROKEN = [{"code": "deadline", "message": "loop: 61 ms of 50 ms"}]
CERTIFICATE = {"text": "No adjustment with at most 1 move gains more than 0.", "proven": True, "moves": 1}
GOALS = {"objective": {"balance": 1.0}}


class Scene:
    """A cluster whose scheduler answers with ``answers`` in turn, and then proposes nothing. ``room``: whether it finds
    paths beside what tasks hold; ``meanwhile``: what happens while it decides."""

    def __init__(self, world: World, bus: MemoryBus) -> None:
        self.world, self.bus, self.measurements = world, bus, Measurements()
        self.answers: list[AdjustmentAnswer] = []
        self.asked: list[AdjustmentQuery] = []
        self.holds, self.room, self.garbled = True, False, False
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.database = Database(world.uow, world.clock)
        self.keeper = SelfAdjuster(self.database, bus, self.measurements, lambda: self.holds)

    async def open(self) -> None:
        await self.bus.serve(subjects.rpc("scheduler", "adjust"), self._adjust, queue="scheduler")
        await self.bus.serve(subjects.rpc("scheduler", "move"), self._move, queue="scheduler")

    async def _adjust(self, message: Message) -> bytes:
        self.asked.append(AdjustmentQuery.model_validate_json(message.data))
        if self.meanwhile is not None:
            await self.meanwhile()
        return (self.answers.pop(0) if self.answers else self.says(None)).encode()

    async def _move(self, message: Message) -> bytes:
        if self.garbled:
            return b"{"
        query = MoveQuery.model_validate_json(message.data)
        record = self.world.job(query.job)
        where = {each.task: each.node for each in record.allocations} | {query.task: query.node}
        flows = direct([flow for flow in record.flows if query.task in (flow.src, flow.dst)], where, 12_000_000)
        return MoveAnswer(
            version=0, flows=flows if self.room else [], reason=None if self.room else "no paths have room"
        ).encode()

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

    def running(self, **more: Any) -> str:
        job = self.world.submit(apart("app", **{"adjust": {}} | GOALS | more))
        self.world.run(job, ["a", "b"])
        return job

    async def settled(self, **more: Any) -> str:
        """An application at which the first look has found nothing."""
        job = self.running(**more)
        await self.step()
        assert len(self.asked) == 1
        self.asked.clear()
        self.world.wait(LEAST_S)
        return job

    def slow_down(self, src: str = "a", dst: str = "b", delay: str = "40ms") -> None:
        file = full_mesh(["a", "b", "c"]).model_dump(mode="json")
        for link in file["links"]:
            if {link["src"], link["dst"]} == {src, dst}:
                link["delay"] = delay
        self.world.put_topology(TopologyFile.model_validate(file))

    async def step(self, seconds: float = 1.0) -> None:
        self.world.wait(seconds)
        await self.keeper.take_in()
        await self.keeper.look()

    def there(self, job: str, task: str = "w-1") -> None:
        """Its move succeeds."""
        old = place(self.world, job, task)
        laid(self.world, job)
        gone(self.world, old)
        says(self.world, place(self.world, job, task), "running")
        assert state(self.world, job) == "done"

    def last(self, job: str) -> LastLook:
        with self.world.uow.read() as tx:
            found = last_look(tx, job)
        assert found is not None
        return found


def move_to(node: str, rate: float = 20_000_000, **more: Any) -> dict[str, Any]:
    """Of w-1, which is on b, with both flows beside it."""
    flows = [
        {"src": "w-0", "dst": "w-1", "bandwidth": rate, "path": ["a", node]},
        {"src": "w-1", "dst": "w-0", "bandwidth": rate, "path": [node, "a"]},
    ]
    moves = [{"task": "w-1", "src": "b", "dst": node, "seconds": 3, "requests": 6}]
    change = {"step": "moves", "moves": moves, "objective": 0.6, "cost": 0.01, "disturbance": 6, "flows": flows}
    return change | {"assignments": {"w-0": "a", "w-1": node}} | more


def both_to(node: str) -> dict[str, Any]:
    """Of w-1 and of w-0, which is on a."""
    change = move_to(node, cost=0.4, disturbance=8)
    change["moves"].append({"task": "w-0", "src": "a", "dst": node, "seconds": 3, "requests": 2})
    return change
