from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from manager_world import START, World, ring, sqlite_url

from ces_common.messages.cards import Card
from ces_common.messages.events import QueueStatus, Score
from ces_common.messages.regions import MAX_MODELS, CardRoom, Room
from ces_manager.nodes import operations
from ces_manager.regions.totals import card_rooms, last_start_s, rooms, totals

SCORE = Score(fit=1.0, priority=0.0, waiting=0.0, share=0.0, total=1.0, scarce="cpu")


def test_sums_are_of_what_takes_new_work_and_name_nothing(tmp_path: Path) -> None:
    world = World(sqlite_url(tmp_path))
    world.add_nodes("n1", "n2", "n3")
    job = world.submit(ring(tasks=1))
    world.submit(ring("waits", tasks=1))
    world.run(job, ["n1"])
    world.write(lambda tx: operations.cordon(tx, "n3"))
    with world.uow.read() as tx:
        found = totals(tx, [], world.now)
    node = Room(cpu=found.total.cpu // 2, memory=found.total.memory // 2, gpu=found.total.gpu // 2)
    assert found.nodes == 2
    assert found.free == Room(cpu=found.total.cpu - 500, memory=found.total.memory - 128 * 2**20, gpu=found.total.gpu)
    assert found.largest == node
    assert sum(found.rooms) == 2
    assert found.queued == 1
    text = found.encode().decode()
    assert not [name for name in ("n1", "n2", "n3", job, "ring", "waits", "10.64") if name in text]
    world.close()


def test_nodes_fall_into_buckets_by_free_cores() -> None:
    assert rooms([0, 999, 1000, 1999, 2000, 31_999, 32_000, 10**9]) == [2, 2, 1, 0, 0, 1, 2]


def test_cards_fall_into_buckets_by_what_is_free_of_each_model() -> None:
    cards = {
        "n1": [Card(id="a", model="T4"), Card(id="b", model="T4"), Card(id="c", model="P100")],
        "n2": [Card(id="a", model="T4"), Card(id="gpu1")],
    }
    taken = {"n1": {"a": (1000, 0), "b": (500, 0)}, "n2": {"a": (999, 0)}}
    assert card_rooms(cards, taken) == [
        CardRoom(model="", rooms=[0, 0, 0, 0, 0, 1]),
        CardRoom(model="P100", rooms=[0, 0, 0, 0, 0, 1]),
        CardRoom(model="T4", rooms=[1, 1, 0, 1, 0, 0]),
    ]
    assert [room.rooms for room in card_rooms({"n": [Card(id="a")]}, {"n": {"a": (750, 0)}})] == [[0, 0, 1, 0, 0, 0]]
    many = {"n": [Card(id=f"c{i}", model=f"m{i:02}") for i in range(64)]}
    assert len(card_rooms(many, {})) == MAX_MODELS


def test_the_foreseen_wait_is_known_only_where_all_of_it_is() -> None:
    at = [QueueStatus(job=str(i), position=i, score=SCORE, start_at=START + timedelta(seconds=i)) for i in (1, 9, 5)]
    assert last_start_s(at, START) == 9
    assert last_start_s([*at, QueueStatus(job="x", position=4, score=SCORE)], START) is None
    assert last_start_s([], START) is None
    assert last_start_s(at, START + timedelta(hours=1)) == 0
