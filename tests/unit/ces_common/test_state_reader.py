"""Following the manager's state over the bus: snapshots on demand, hints when to look."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_state import node, snapshot
from memory_bus import PENDING_MESSAGES, MemoryBroker, MemoryBus
from waiting import until

from ces_common import subjects
from ces_common.bus.port import BusUnavailable, Callback, Message, RemoteError, RequestTimeout
from ces_common.messages.events import CloudEvent, NodeChanged, new_event
from ces_common.messages.records import Snapshot, SnapshotQuery
from ces_common.state_reader import LARGE, LONGEST_ANSWER_S, StateReader


class Manager:
    """Answers with what it is told to, and remembers what it was asked."""

    def __init__(self, bus: MemoryBus) -> None:
        self._bus = bus
        self.asked: list[tuple[str, int]] = []
        self.answers: list[bytes | Exception] = []
        self.hold: asyncio.Event | None = None

    async def open(self) -> None:
        await self._bus.serve(subjects.rpc("manager", "snapshot"), self._answer)

    async def _answer(self, message: Message) -> bytes:
        query = SnapshotQuery.model_validate_json(message.data)
        self.asked.append((query.epoch, query.since))
        answer = self.answers.pop(0)
        if self.hold is not None:
            await self.hold.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def manager(bus: MemoryBus) -> Manager:
    manager = Manager(bus)
    await manager.open()
    return manager


async def test_first_everything_then_what_changed(bus: MemoryBus, manager: Manager) -> None:
    manager.answers = [
        snapshot([node("a")], version=4).encode(),
        Snapshot(epoch="e", version=6, full=False, nodes=[node("b")]).encode(),
    ]
    reader = StateReader(bus)
    assert await reader.refresh()
    assert await reader.refresh()
    assert manager.asked == [("", 0), ("e", 4)]
    assert (set(reader.view.nodes), reader.view.version) == ({"a", "b"}, 6)


@pytest.mark.parametrize(
    "answer",
    [
        b"rubbish",
        BusUnavailable("away"),
        Snapshot(epoch="other", version=9, full=False).encode(),
        b'{"epoch": "e", "version": "soon", "full": true}',
    ],
    ids=["rubbish", "error", "changes of another database", "malformed"],
)
async def test_what_cannot_be_read_changes_nothing(bus: MemoryBus, manager: Manager, answer: bytes | Exception) -> None:
    manager.answers = [snapshot([node("a")], version=4).encode(), answer, snapshot([node("c")], version=5).encode()]
    reader = StateReader(bus)
    assert await reader.refresh()
    assert not await reader.refresh()
    assert not reader.fresh
    assert set(reader.view.nodes) == {"a"}
    assert await reader.refresh()
    assert reader.fresh


async def test_no_manager_is_no_error(bus: MemoryBus) -> None:
    assert not await StateReader(bus).refresh()


async def test_who_has_much_to_tell_is_waited_for_longer_and_longer(
    bus: MemoryBus, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    ask = bus.request

    async def request(subject: str, data: bytes = b"", *, timeout_s: float = 0.0) -> bytes:
        waited.append(timeout_s)
        if len(waited) in (*range(1, 7), 9):
            raise RequestTimeout("too much to tell")
        return await ask(subject, data, timeout_s=60)

    monkeypatch.setattr(bus, "request", request)
    manager.answers = [snapshot([node("a")], version=4).encode(), RemoteError("unavailable", "no database")]
    reader = StateReader(bus)
    assert [await reader.refresh(2.0) for _ in range(9)] == [False] * 6 + [True, False, False]
    assert waited == [2, 4, 8, 16, LONGEST_ANSWER_S, LONGEST_ANSWER_S, LONGEST_ANSWER_S, 2, 2]


async def test_two_readers_of_one_view_ask_one_after_the_other(bus: MemoryBus, manager: Manager) -> None:
    manager.hold = asyncio.Event()
    manager.answers = [
        snapshot([node("a")], version=4).encode(),
        Snapshot(epoch="e", version=5, full=False).encode(),
    ]
    reader = StateReader(bus)
    both = asyncio.gather(reader.refresh(), reader.refresh())
    for _ in range(20):
        await asyncio.sleep(0)
    assert manager.asked == [("", 0)]
    manager.hold.set()
    assert await both == [True, True]
    assert manager.asked == [("", 0), ("e", 4)]
    assert reader.view.version == 5


async def test_a_large_answer_is_parsed_beside_the_loop_and_merged_in_its_turn(
    bus: MemoryBus, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the state takes a second to parse, in which nothing else would be done."""
    held, threads = threading.Event(), list[threading.Thread]()
    parse = Snapshot.model_validate_json

    class Slow(Snapshot):
        @classmethod
        def model_validate_json(cls, raw: Any, **_: Any) -> Snapshot:
            threads.append(threading.current_thread())
            if len(raw) > LARGE:
                assert held.wait(60)
            return parse(raw)

    monkeypatch.setattr("ces_common.state_reader.Snapshot", Slow)
    names = [f"node-{i}" for i in range(1000)]
    manager.answers = [
        snapshot([node("a")], version=4).encode(),
        Snapshot(epoch="e", version=5, full=False, nodes=[node(name) for name in names]).encode(),
        Snapshot(epoch="e", version=6, full=False, removed_nodes=names[1:]).encode(),
    ]
    reader = StateReader(bus)
    assert await reader.refresh()
    both = asyncio.gather(reader.refresh(), reader.refresh())
    await until(lambda: len(threads) == 2)
    assert (reader.view.version, set(reader.view.nodes)) == (4, {"a"}), "and the loop goes on"
    held.set()
    assert await both == [True, True]
    assert (reader.view.version, set(reader.view.nodes)) == (6, {"a", names[0]})
    main = threading.main_thread()
    assert [thread is main for thread in threads] == [True, False, True]


def changed(node: str) -> CloudEvent[Any]:
    return new_event("manager", "node", "changed", node, NodeChanged(node=node, change="ready"), datetime.now(UTC))


async def publish(bus: MemoryBus, event: CloudEvent[Any]) -> None:
    await bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)


async def test_events_are_hints_and_are_shown_to_every_reader(bus: MemoryBus) -> None:
    readers, shown = [StateReader(bus), StateReader(bus)], list[list[bytes]]([[], []])
    for reader, seen in zip(readers, shown, strict=True):
        await reader.start([subjects.events("node")], lambda message, seen=seen: seen.append(message.data))
        assert await reader.hint.wait(60), "the first look is due at once"
    events = [changed(f"n{i}") for i in range(4)]
    for event in events:
        await publish(bus, event)
    for reader in readers:
        assert await reader.hint.wait(60)
    await bus.close()  # handles what waits
    assert shown == [[event.encode() for event in events]] * 2


async def test_an_event_that_cannot_be_read_is_a_hint_all_the_same(bus: MemoryBus) -> None:
    def refuse(message: Message) -> None:
        raise ValueError("no event of ours")

    reader = StateReader(bus)
    await reader.start([subjects.events("node")], refuse)
    assert await reader.hint.wait(60)
    for number in "12":
        await bus.publish_fact(subjects.event("node", "changed", "n"), b"rubbish", message_id=number)
        assert await reader.hint.wait(60)
    await reader.close()


async def test_events_that_are_dropped_for_want_of_room_are_followed_by_a_hint(bus: MemoryBus) -> None:
    """Those that still wait come after them."""
    seen: list[bytes] = []
    reader = StateReader(bus)
    await reader.start([subjects.events("node")], lambda message: seen.append(message.data))
    assert await reader.hint.wait(60)
    last = PENDING_MESSAGES + 9
    for number in range(last + 1):
        await bus.publish(subjects.event("node", "changed", "n"), b"%d" % number)
    assert not seen, "none was handled while they came"
    assert await reader.hint.wait(60), "after the last was dropped"
    await bus.close()  # handles what waits
    assert (len(seen), b"%d" % last in seen) == (PENDING_MESSAGES, False)


async def test_a_lost_connection_is_a_hint() -> None:
    """What was said meanwhile was missed."""
    bus = LosesConnection(MemoryBroker())
    await bus.connect()
    reader = StateReader(bus)
    await reader.start([subjects.events("node")])
    assert await reader.hint.wait(60)
    for callback in bus.callbacks:
        await callback()
    assert await reader.hint.wait(0)
    await reader.close()
    await bus.close()


class LosesConnection(MemoryBus):
    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(broker)
        self.callbacks: list[Callback] = []

    def on_reconnect(self, callback: Callback) -> None:
        self.callbacks.append(callback)
