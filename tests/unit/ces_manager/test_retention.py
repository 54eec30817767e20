"""History is dropped when it is old."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from manager_world import World, ring
from sqlalchemy import select

from ces_common.db.access_tables import JoinTokenRow
from ces_common.db.tables import EventRow, InboxRow
from ces_common.messages.membership import JoinRequest, JoinToken, JoinTokenRequest
from ces_manager.__main__ import drop_history
from ces_manager.database import Database
from ces_manager.nodes import membership

NODES = ["a", "b", "c", "d"]


KEYS = ["U" + letter * 55 for letter in "ABC"]


def request(token: JoinToken, name: str, key: str = KEYS[0], **more: object) -> JoinRequest:
    return JoinRequest.model_validate(
        {"token": token.token, "name": name, "public_key": key, "cpu": 1000, "memory": 2**30, **more}
    )


def test_history_is_dropped_when_it_is_old_and_published(world: World) -> None:
    """With it go the ids of consumed messages and the join tokens that have ended."""
    with world.uow.bare_write() as session:
        session.query(EventRow).update({"published": True})
    world.submit(ring())  # not published: it must stay, however old
    world.write(lambda tx: tx.first_time("long ago"))
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(ttl_s=3600)))
    world.write(lambda tx: membership.join_node(tx, request(token, "new")))
    with world.uow.bare_write() as session:
        session.query(EventRow).filter(EventRow.type == "ces.v1.node.changed").update({"published": True})
    assert world.prune() == 0
    world.wait(world.timeouts.keep_messages_s + 1)
    world.write(lambda tx: tx.first_time("just now"))
    world.prune()
    with world.uow.read() as tx:
        assert tx.session.scalars(select(EventRow.type)).all() == ["ces.v1.job.queued"]
        assert tx.session.scalars(select(InboxRow.id)).all() == ["just now"]
        assert len(tx.session.scalars(select(JoinTokenRow.hash)).all()) == 1, "it ended less than a week ago"
    world.wait(3600)
    world.prune()
    with world.uow.read() as tx:
        assert tx.session.scalars(select(JoinTokenRow.hash)).all() == []
    forget_history(world)


def test_a_step_of_the_clock_ages_no_history(world: World) -> None:
    with world.uow.bare_write() as session:
        session.query(EventRow).update({"published": True})
    world.now += timedelta(days=4000)
    assert world.prune() == 0


async def test_history_is_dropped_as_fast_as_it_is_made(world: World) -> None:
    few = replace(world.timeouts, prune_rows=10)
    world.write(lambda tx: [tx.first_time(f"message {i}") for i in range(100)])
    world.wait(world.timeouts.keep_messages_s + 1)
    database = Database(world.uow, world.clock)

    def left() -> int:
        with world.uow.read() as tx:
            return len(tx.session.scalars(select(InboxRow.id)).all())

    await drop_history(database, few, 0.0)
    assert left() == 90, "one step, where there is no time for more"
    await drop_history(database, few, 60.0)
    assert left() == 0
    database.close()


def forget_history(world: World) -> None:
    """So that the audit of numbers, which knows no pruning, begins anew."""
    with world.uow.bare_write() as session:
        session.query(EventRow).delete()
    with world.uow.write(world.now) as tx:
        tx.cluster().sequence = 0
