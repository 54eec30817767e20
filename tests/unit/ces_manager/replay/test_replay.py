"""The cluster as it was at an instant, from keyframes and events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from history_actors import malleable
from manager_world import World, full_mesh, ring, sqlite_url
from meshed_world import meshed_world

from ces_common.db.history_tables import KeyframeRow
from ces_common.db.outbox import latest_event
from ces_common.db.tables import EventRow
from ces_manager.errors import NotFound
from ces_manager.replay.events import Known, Network, replay
from ces_manager.replay.keyframes import EVENTS, Kept, is_due, past_of
from ces_manager.replay.past import Past, held_on_links, held_on_nodes, packed, picture_of, unpacked
from ces_manager.replay.replay import past_at
from ces_manager.timeouts import DAY_S

NODES = ["a", "b", "c"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with meshed_world(sqlite_url(tmp_path), *NODES, cpu=1500) as made:
        yield made


def keep(world: World) -> int:
    with world.uow.read() as tx:
        past = past_of(tx, world.now)
    with world.uow.bare_write() as session:
        session.merge(KeyframeRow(sequence=past.sequence, time=world.now, body=packed(past)))
    return past.sequence


def then(world: World, **when: object) -> Past:
    with world.uow.read() as tx:
        return past_at(tx, world.now, **when)  # type: ignore[arg-type]


def last(world: World) -> int:
    with world.uow.read() as tx:
        return latest_event(tx)


def test_an_earlier_instant_is_as_it_was(world: World) -> None:
    keep(world)
    first = world.submit(ring("first"))
    world.run(first, NODES)
    world.wait(10)
    running, at = last(world), world.now
    world.wait(10)
    world.cancel(first)
    for now in (then(world, at=at), then(world, event=running)):
        assert [job.state for job in now.jobs.values()] == ["running"]
        assert set(held_on_links(now).values()) == {10_000_000}
        assert now.sequence == running
    assert [job.state for job in then(world).jobs.values()] == ["cancelled"]


def test_a_size_that_was_given_up_holds_nothing_more(world: World) -> None:
    job = world.submit(malleable(low=2))
    world.run(job, ["a", "b"])
    keep(world)
    assert world.resize(job, 3, ["a", "b", "c"]) is None
    assert held_on_nodes(then(world))["c", "cpu"] == 500
    world.cancel(job)
    now = then(world)
    assert (now.jobs[job].coming, held_on_nodes(now)["c", "cpu"]) == (None, 0)
    assert held_on_nodes(now)["a", "cpu"] == 500, "its workers have not ended yet"


def test_links_that_came_later_are_known_between_two_keyframes(world: World) -> None:
    world.put_topology(full_mesh(["a", "b"]))
    keep(world)
    world.wait(1)
    world.put_topology(full_mesh(NODES, "25Mbit"))
    changed = last(world)
    world.wait(1)
    world.submit(ring())
    keep(world)
    world.wait(1)
    world.put_topology(full_mesh(["a", "c"]))
    now = then(world, event=changed)
    assert {key: (link["bandwidth"], link["state"]) for key, link in now.links.items()} == {
        f"{src}>{dst}": (25_000_000, "up") for src in NODES for dst in NODES if src != dst
    }
    assert set(then(world).links) == {"a>c", "c>a"}


def test_what_one_transaction_did_is_shown_together(world: World) -> None:
    keep(world)
    world.wait(1)
    job = world.submit(ring())
    world.wait(1)
    assert world.commit(world.propose(job, NODES)) is None
    end = last(world)
    world.wait(1)
    world.submit(ring("later"))
    with world.uow.read() as tx:
        shown = {past_at(tx, world.now, event=number).sequence for number in range(end - 3, end + 1)}
    assert shown == {end}


def test_what_is_not_kept_is_refused_with_where_history_begins(world: World) -> None:
    with pytest.raises(NotFound, match="no history is kept yet"):
        then(world)
    world.wait(1)
    world.submit(ring())
    begun = keep(world)
    with pytest.raises(NotFound, match=f"history begins with event {begun}, 2030-01-01 00:00:01 UTC"):
        then(world, event=1)
    with pytest.raises(NotFound, match="history begins"):
        then(world, at=world.now - timedelta(days=1))
    with pytest.raises(NotFound, match=f"no event 4711; the last one is {begun}"):
        then(world, event=4711)


def test_jobs_that_are_over_and_hold_nothing_are_not_shown(world: World) -> None:
    keep(world)
    job = world.submit(ring(tasks=1))
    assert set(then(world).jobs) == {job}
    world.cancel(job)
    assert then(world).jobs == {}


def test_bytes_are_the_same_past(world: World) -> None:
    job = world.submit(malleable(low=2))
    world.run(job, ["a", "b"])
    assert world.resize(job, 3, ["a", "b", "c"]) is None
    with world.uow.read() as tx:
        past = past_of(tx, world.now)
    assert unpacked(packed(past)) == past
    assert picture_of(past).jobs[job]["nodes"] == ["a", "b"]


def test_a_keyframe_is_due_when_much_has_happened_or_links_were_replaced(world: World) -> None:
    def due(kept: Kept | None) -> bool:
        with world.uow.read() as tx:
            return is_due(tx, kept, world.now)

    minute = timedelta(minutes=1)
    number = last(world)
    assert due(None)
    assert not due(Kept(number, world.now - 100 * minute)), "nothing has happened since"
    world.submit(ring())
    assert not due(Kept(number, world.now - minute))
    assert due(Kept(number, world.now - 60 * minute))
    assert due(Kept(number + 1 - EVENTS, world.now - minute))
    assert not due(Kept(number + 1 - EVENTS, world.now)), "one was kept just now"
    number = last(world)
    world.put_topology(full_mesh(NODES))
    assert due(Kept(number, world.now - minute))


def test_instants_that_only_a_keyframe_knows_are_told_by_it(world: World) -> None:
    """As after an upgrade: the events before the first keyframe have been dropped."""
    world.submit(ring("first"))
    world.wait(60)
    begun, at = keep(world), world.now
    world.wait(60)
    world.submit(ring("second"))
    with world.uow.bare_write() as session:
        session.query(EventRow).filter(EventRow.sequence <= begun).delete()
    for when in ({"event": begun}, {"at": at}, {"at": at + timedelta(seconds=30)}):
        now = then(world, **when)
        assert (now.sequence, [job.facts["name"] for job in now.jobs.values()]) == (begun, ["first"])


def test_history_reaches_back_as_far_as_is_kept_on_a_quiet_cluster(world: World) -> None:
    world.wait(1)
    world.submit(ring("first"))
    keep(world)
    world.wait(2 * DAY_S)
    world.submit(ring("second"))
    changed = last(world)
    with world.uow.bare_write() as session:
        session.query(EventRow).update({"published": True})
    world.wait(6 * DAY_S)
    world.prune()
    assert [job.facts["name"] for job in then(world, event=changed).jobs.values()] == ["first", "second"]
    assert len(then(world, at=world.now - timedelta(days=7)).jobs) == 1
    world.submit(ring("third"))
    keep(world)
    world.wait(30 * DAY_S)
    world.prune()
    assert len(then(world).jobs) == 3, "the newest keyframe stays, however old"
    with pytest.raises(NotFound, match="history begins"):
        then(world, event=changed)


def test_known_nodes_are_looked_up_nowhere(world: World) -> None:
    """Or each outage of a large network would be read again and again."""
    keep(world)
    looked: list[int] = []
    known = Known(lambda _: None, lambda number: looked.append(number) or Network({}, {}, {}))
    with world.uow.read() as tx:
        past = past_of(tx, world.now)
    changed = {"type": "ces.v1.node.changed", "data": {"change": "unreachable", "cpu": 1, "memory": 1, "gpu": 0}}
    for name in NODES:
        replay(past, changed | {"data": changed["data"] | {"node": name}}, known)  # type: ignore[operator]
    assert ({facts["state"] for facts in past.nodes.values()}, looked) == ({"unreachable"}, [])
