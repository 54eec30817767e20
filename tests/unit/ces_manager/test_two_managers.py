"""Two managers on one database: what one does for both, and what both know. In one process, on time that is told to
pass."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from founded_cluster import founded_cluster
from manager_world import ring
from memory_bus import MemoryBus
from processes import NOBODY
from whole_world import CONTROLLERS, HEARTBEAT_S, MANAGERS, WholeWorld

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.db.tables import NodeRow
from ces_common.messages.events import parse_event
from ces_common.messages.reports import Heartbeat
from ces_manager.duties import RELAY, STANDING
from ces_manager.jobs import submission
from ces_manager.messaging.peers import MEASURED

TAKEN_OVER_S = 5.0
NODES = {"a": 1000, "b": 1000}


class Hearer:
    """Hears all events, as the other services do, and counts how often each comes."""

    def __init__(self, world: WholeWorld) -> None:
        self.world, self.heard = world, Counter[str]()
        self._before = 0  # heard when something was submitted last
        self._bus = MemoryBus(world.broker)
        world.loop.create_task(self._listen(), context=NOBODY.copy())
        world.settle()

    async def _listen(self) -> None:
        await self._bus.connect()
        await self._bus.subscribe(subjects.ALL_EVENTS, self._event)

    async def _event(self, message: Message) -> None:
        event = parse_event(message.data)
        self.heard[event.id] += event.sequence is not None

    def submit(self, name: str) -> None:
        """A user, at any manager; nobody is told that something was committed."""
        self._before = len(self.heard)
        self.world.write(lambda tx: submission.submit_job(tx, ring(name), None))

    def ask(self, subject: str, data: Heartbeat) -> asyncio.Task[bytes]:
        return self.world.loop.create_task(self._bus.request(subject, data.encode()), context=NOBODY.copy())

    def say(self, subject: str, data: bytes) -> None:
        self.world.loop.create_task(self._bus.publish(subject, data), context=NOBODY.copy())

    def hears_within(self, seconds: float) -> bool:
        """Whether something has come since, or does."""
        return self.within(seconds, lambda: len(self.heard) > self._before)

    def within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        for _ in range(round(seconds * 10)):
            if condition():
                return True
            self.world.flow(0.1)
        return condition()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[WholeWorld]:
    made = WholeWorld(tmp_path, founded_cluster(**NODES), NODES, {}, shared=True)
    yield made
    made.close()
    assert made.errors == []


def start(world: WholeWorld, *names: str) -> None:
    for name in names:
        world.start(name)
    world.flow(1.5)


def holders(world: WholeWorld, duty: str) -> list[str]:
    return [name for name, duties in world.duties.items() if duties.holds(duty)]


def test_every_event_is_published_by_one(world: WholeWorld) -> None:
    hearer = Hearer(world)
    start(world, *MANAGERS, *CONTROLLERS, *NODES)
    for number in range(5):
        hearer.submit(f"job-{number}")
        assert hearer.hears_within(TAKEN_OVER_S)
    world.flow(TAKEN_OVER_S)
    assert set(hearer.heard.values()) == {1}, "each came once"
    assert {duty: holders(world, duty) for duty in STANDING} == {duty: ["manager-1"] for duty in STANDING}


@pytest.mark.parametrize("again", [False, True])
def test_events_flow_again_soon_after_the_one_that_relays_has_died(world: WholeWorld, again: bool) -> None:
    hearer = Hearer(world)
    start(world, *MANAGERS)
    world.kill("manager-1")
    hearer.submit("job")
    if again:
        world.start("manager-1")
    assert hearer.hears_within(1.0 if again else TAKEN_OVER_S)
    assert holders(world, RELAY) == (["manager-1"] if again else ["manager-2"])
    assert max(hearer.heard.values()) == 1


def test_what_the_other_manager_commits_is_published_at_once(world: WholeWorld) -> None:
    hearer = Hearer(world)
    start(world, *MANAGERS, *NODES)
    world.flow(5.0)  # each has heard of the other
    known = len(hearer.heard)
    writing = world.writers["manager-2"].write(lambda tx: submission.submit_job(tx, ring(), None))
    world.processes.within("manager-2", _done(writing))
    assert hearer.within(0.1, lambda: len(hearer.heard) > known)


async def _done(work: Awaitable[object]) -> None:
    await work


def test_time_has_its_effects_when_the_one_that_kept_it_has_died(world: WholeWorld) -> None:
    """The other has observed all the while: a silent node waits for no second measure of time."""
    start(world, *MANAGERS, *NODES)
    hearer = Hearer(world)
    world.kill("a")
    world.flow(10.0)
    world.kill("manager-1")

    def state() -> str:
        with world.uow.read() as tx:
            return tx.session.get_one(NodeRow, "a").state

    assert state() == "ready"
    assert hearer.within(TAKEN_OVER_S + HEARTBEAT_S, lambda: state() == "unreachable")


def test_both_know_what_nodes_measured(world: WholeWorld) -> None:
    hearer = Hearer(world)
    start(world, *MANAGERS)
    world.flow(5.0)  # each has heard of the other
    for number in range(1, 7):
        beat = Heartbeat(node="a", boot="b", cpu=number)
        asked = hearer.ask(subjects.heartbeat("a"), beat)
        assert hearer.within(1.0, asked.done)
        world.flow(0.1)
        known = [world.measurements[name].beat("a") for name in MANAGERS]
        assert [None if each is None else each[1] for each in known] == [beat, beat]


def test_measurements_in_the_name_of_a_manager_that_make_no_sense_are_ignored(world: WholeWorld) -> None:
    hearer = Hearer(world)
    start(world, *MANAGERS)
    hearer.say(MEASURED, b"[{]")
    hearer.say(MEASURED, b'[{"node": "a", "boot": "b", "cpu": 7}]')
    world.flow(0.1)
    for name in MANAGERS:
        beat = world.measurements[name].beat("a")
        assert beat is not None
        assert beat[1].cpu == 7
