"""The board: documents are written when their content must change, and only then."""

import asyncio
import math

import pytest
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import BusUnavailable
from ces_common.messages.desired import DesiredCompute, DesiredWorker
from ces_common.spec_store import SpecStore, due, only_less

TRUST_S = 30.0


def document(node: str = "a", *tasks: str, generation: int = 1, epoch: str = "e") -> DesiredCompute:
    workers = [
        DesiredWorker(
            allocation=f"x-{task}",
            incarnation=1,
            job="j",
            job_name="j",
            task=task,
            rank=i,
            cpu=1,
            memory=1,
            env={"A": "b"},
        )
        for i, task in enumerate(tasks)
    ]
    return DesiredCompute(node=node, epoch=epoch, generation=generation, workers=workers)


def test_due_is_what_differs_in_content() -> None:
    same, changed, new = document("a", "t"), document("b", "t"), document("c")
    known = {"a": document("a", "t", generation=7), "b": document("b", "u"), "c": None}
    assert due({"a": same, "b": changed, "c": new}, known, {}) == [changed, new]


def test_due_is_what_must_show_a_newer_generation() -> None:
    planned = {"a": document("a", generation=9)}
    assert due(planned, {"a": document("a", generation=5)}, {"a": 6}) == [planned["a"]]
    assert due(planned, {"a": document("a", generation=6)}, {"a": 6}) == []


def test_due_is_everything_in_a_new_database() -> None:
    planned = {"a": document("a", "t", epoch="new")}
    assert due(planned, {"a": document("a", "t", generation=99)}, {}) == [planned["a"]]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def board_on(bus: MemoryBus, clock: Clock) -> SpecStore[DesiredCompute]:
    return SpecStore(bus, "compute", DesiredCompute, lambda node: subjects.desired_key(node, "compute"), TRUST_S, clock)


@pytest.fixture
def board(bus: MemoryBus, clock: Clock) -> SpecStore[DesiredCompute]:
    return board_on(bus, clock)


def there(broker: MemoryBroker, node: str = "a") -> DesiredCompute:
    return DesiredCompute.model_validate_json(broker.bucket[f"{node}.compute"])


async def test_what_is_unchanged_is_not_written_again(broker: MemoryBroker, board: SpecStore[DesiredCompute]) -> None:
    assert await board.put({"a": document("a", "t"), "b": document("b")}, 3) == ["a", "b"]
    assert await board.put({"a": document("a", "t"), "b": document("b")}, 4) == []
    assert there(broker).generation == 3
    assert await board.put({"a": document("a", "t", "u"), "b": document("b")}, 5) == ["a"]
    assert there(broker) == document("a", "t", "u", generation=5)


async def test_a_document_too_large_to_be_sent_keeps_no_other_node_waiting(
    broker: MemoryBroker, board: SpecStore[DesiredCompute]
) -> None:
    large = document("a", *(f"{number}-{'x' * 2000}" for number in range(5000)))
    assert await board.put({"a": large, "b": document("b", "t")}, 3) == ["b"]
    assert there(broker, "b").generation == 3
    assert await board.put({"a": document("a"), "b": document("b", "t")}, 4) == ["a"]


async def test_at_least_renews_an_unchanged_document_once(
    broker: MemoryBroker, board: SpecStore[DesiredCompute]
) -> None:
    await board.put({"a": document()}, 3)
    assert await board.put({"a": document()}, 6, {"a": 5}) == ["a"]
    assert there(broker).generation == 6
    assert await board.put({"a": document()}, 7, {"a": 5}) == []


async def test_a_new_controller_adopts_what_is_there(
    broker: MemoryBroker, bus: MemoryBus, board: SpecStore[DesiredCompute], clock: Clock
) -> None:
    await board.put({"a": document("a", "t")}, 3)
    assert await board_on(bus, clock).put({"a": document("a", "t")}, 9) == []
    assert there(broker).generation == 3


async def test_what_cannot_be_read_is_replaced(broker: MemoryBroker, board: SpecStore[DesiredCompute]) -> None:
    broker.bucket["a.compute"] = b"\xffrubbish"
    assert await board.put({"a": document()}, 3) == ["a"]
    assert there(broker).generation == 3


async def test_a_lost_bucket_is_filled_again_in_time(
    broker: MemoryBroker, board: SpecStore[DesiredCompute], clock: Clock
) -> None:
    await board.put({"a": document()}, 3)
    broker.bucket.clear()
    assert await board.put({"a": document()}, 4) == []
    clock.now = TRUST_S + 1
    assert await board.put({"a": document()}, 5) == ["a"]
    assert there(broker).generation == 5


async def test_the_same_plan_is_written_again_where_the_bucket_was_lost(
    broker: MemoryBroker, board: SpecStore[DesiredCompute]
) -> None:
    plan = {"a": document("a", "t")}
    assert await board.put(plan, 3) == ["a"]
    assert await board.put(plan, 4) == []
    broker.bucket.clear()
    board.forget()
    assert await board.put(plan, 5) == ["a"]
    assert await board.put(plan, 7, {"a": 6}) == ["a"], "nothing is new but the generation that it must show"
    assert await board.put({}, 8) == []
    assert await board.put(plan, 9) == ["a"], "the node was forgotten, and has joined again"


async def test_a_slower_controller_leaves_what_was_made_of_a_later_state(
    broker: MemoryBroker, bus: MemoryBus, board: SpecStore[DesiredCompute], clock: Clock
) -> None:
    slow = board_on(bus, clock)
    await board.put({"a": document("a", "t")}, 3)
    assert await slow.put({"a": document("a", "t")}, 3) == []
    await board.put({"a": document("a", "u")}, 9)
    assert await slow.put({"a": document("a", "v")}, 8) == []
    assert there(broker) == document("a", "u", generation=9)
    assert await slow.put({"a": document("a", "v")}, 8) == []
    assert await slow.put({"a": document("a", "u")}, 9) == [], "it has caught up"
    assert await slow.put({"a": document("a", "w")}, 10) == ["a"]
    assert await board.put({"a": document("a", "x", epoch="new")}, 1) == ["a"], "a new database counts anew"


async def test_what_was_stored_without_a_word_of_it_is_found(
    monkeypatch: pytest.MonkeyPatch, broker: MemoryBroker, bus: MemoryBus, board: SpecStore[DesiredCompute]
) -> None:
    put = bus.kv_put

    async def stored_silently(key: str, data: bytes, *, after: int | None = None) -> int:
        await put(key, data, after=after)
        raise BusUnavailable("the answer was lost")

    await board.put({"a": document("a", "t")}, 3)
    monkeypatch.setattr(bus, "kv_put", stored_silently)
    with pytest.raises(BusUnavailable):
        await board.put({"a": document("a", "u")}, 4)
    monkeypatch.undo()
    assert await board.put({"a": document("a", "u")}, 5) == ["a"]
    assert there(broker).generation == 5
    assert await board.put({"a": document("a", "u")}, 6) == []


def test_a_document_is_only_less_where_nothing_in_it_is_new() -> None:
    both = document("a", "t", "u")
    one = both.model_copy(update={"workers": both.workers[1:], "generation": 9})
    assert only_less(both, one)
    assert not only_less(one, both)
    assert not only_less(both, one.model_copy(update={"epoch": "other"}))
    other = one.workers[0].model_copy(update={"rank": 7})
    assert not only_less(both, one.model_copy(update={"workers": [other]}))


async def test_what_only_lacks_something_waits_for_company_but_not_for_long(
    broker: MemoryBroker, bus: MemoryBus, clock: Clock
) -> None:
    board = SpecStore(
        bus, "compute", DesiredCompute, lambda node: subjects.desired_key(node, "compute"), TRUST_S, clock, linger_s=1.0
    )
    both = document("a", "t", "u")
    less = both.model_copy(update={"workers": both.workers[1:]})
    await board.put({"a": both}, 1)
    assert (await board.put({"a": less}, 2), board.due_s()) == ([], 1.0)
    assert (await board.put({"a": both}, 3), board.due_s()) == ([], math.inf), "as it was: nothing to write"
    assert await board.put({"a": less}, 4) == []
    clock.now += 0.6
    assert await board.put({"a": less.model_copy(update={"workers": []})}, 5) == []
    assert await board.put({"a": document("a", "v")}, 6) == ["a"], "something new goes at once"
    assert board.due_s() == math.inf
    none = document("a")
    assert await board.put({"a": none}, 7) == []
    assert (await board.put({"a": none}, 8, {"a": 8}), board.due_s()) == (["a"], math.inf), "someone waits for it"
    await board.put({"a": both}, 9)
    assert await board.put({"a": less}, 10) == []
    clock.now += 1.0
    assert board.due_s() == 0.0
    assert await board.put({"a": less}, 11) == ["a"]


async def test_documents_are_written_side_by_side(
    monkeypatch: pytest.MonkeyPatch, bus: MemoryBus, board: SpecStore[DesiredCompute]
) -> None:
    put, under_way = bus.kv_put, asyncio.Barrier(3)

    async def together(key: str, data: bytes, *, after: int | None = None) -> int:
        await under_way.wait()
        return await put(key, data, after=after)

    monkeypatch.setattr(bus, "kv_put", together)
    async with asyncio.timeout(60):
        assert await board.put({node: document(node) for node in "abc"}, 1) == ["a", "b", "c"]


async def test_after_a_reconnect_everything_is_read_anew(
    broker: MemoryBroker, board: SpecStore[DesiredCompute]
) -> None:
    await board.put({"a": document(), "b": document("b")}, 3)
    broker.bucket["a.compute"] = document("a", "foreign", generation=9).encode()
    board.forget()
    assert await board.put({"a": document(), "b": document("b")}, 10) == ["a"]


async def test_documents_of_nodes_that_are_no_more_go(broker: MemoryBroker, board: SpecStore[DesiredCompute]) -> None:
    await board.put({"a": document(), "b": document("b")}, 3)
    assert await board.put({"b": document("b")}, 4) == []
    assert list(broker.bucket) == ["b.compute"]


async def test_what_lies_there_for_nodes_that_are_no_more_is_removed(bus: MemoryBus, clock: Clock) -> None:
    """Also what was written before this controller started, and when the memory is lost at the same time."""
    first = board_on(bus, clock)
    await first.put({node: document(node) for node in "abc"}, 1)
    await bus.kv_put("gone.network", b"another controller's")
    second = board_on(bus, clock)
    await second.put({node: document(node) for node in "ab"}, 2)
    assert await bus.kv_keys("compute") == ["a.compute", "b.compute"]
    clock.now += TRUST_S + 1
    await second.put({"a": document("a")}, 3)
    assert await bus.kv_keys("compute") == ["a.compute"]
    assert await bus.kv_keys("network") == ["gone.network"]
