"""Postgres fails over: a standby is no database, and what was promoted begins a new epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from manager_world import World, ring
from postgres_pair import Server, postgres_pair, postgres_server
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError
from waiting import wait_for

from ces_common.db import UNAVAILABLE, UnitOfWork, new_engine
from ces_common.messages.records import SnapshotQuery
from ces_common.states import JobState

pytestmark = pytest.mark.needs("postgres-pair")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    with postgres_pair() as pair:
        yield pair


def both(primary: Server, standby: Server) -> URL:
    """The address of whichever of them writes, as an operator gives it."""
    url = f"postgresql://ces@/postgres?host=127.0.0.1:{primary.port}&host=127.0.0.1:{standby.port}"
    return make_url(url).update_query_dict({"target_session_attrs": "read-write"})


def command(server: Server, statement: LiteralString) -> object:
    with psycopg.connect(server.url.render_as_string(), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return (cursor.fetchone() or [None])[0] if cursor.description else None


def position(server: Server) -> object:
    return command(
        server,
        "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
        "ELSE pg_current_wal_lsn() END, '0/0')::bigint",
    )


def test_a_failover_is_an_outage_and_then_a_new_epoch(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    world = World(both(primary, standby))
    world.add_nodes("a", "b")
    kept = world.submit(ring(tasks=1))
    world.run(kept, ["a"])
    first = world.snapshot()
    wait_for(lambda: position(standby) == position(primary), "the standby has all of it")

    follower = UnitOfWork(new_engine(standby.url))
    with pytest.raises(UNAVAILABLE, match="recovery is in progress"), follower.write(world.now):
        pass
    with pytest.raises(UNAVAILABLE, match="recovery is in progress"), follower.read():
        pass
    follower.engine.dispose()

    command(standby, "ALTER SYSTEM SET primary_conninfo = ''")
    command(standby, "SELECT pg_reload_conf()")
    wait_for(lambda: command(standby, "SELECT count(*) FROM pg_stat_wal_receiver") == 0, "the standby follows no more")
    lost = world.submit(ring(tasks=1))
    world.run(lost, ["b"])
    seen = world.snapshot(SnapshotQuery(epoch=first.epoch, since=first.version))
    assert (seen.full, seen.epoch, [job.id for job in seen.jobs]) == (False, first.epoch, [lost])
    primary.kill()
    with pytest.raises(UNAVAILABLE):
        world.submit(ring(tasks=1))
    with pytest.raises(UNAVAILABLE):
        world.snapshot()

    standby.promote()
    after = world.snapshot(SnapshotQuery(epoch=seen.epoch, since=seen.version))
    assert after.full
    assert after.epoch != first.epoch
    assert after.version == first.version < seen.version, "it lost what was committed last, and counts on from before"
    assert [job.id for job in after.jobs] == [kept]
    assert world.job(kept).state is JobState.RUNNING
    world.cancel(kept)
    last = world.snapshot(SnapshotQuery(epoch=after.epoch, since=after.version))
    assert (last.full, last.epoch) == (False, after.epoch), "it is one epoch from here on"

    other = UnitOfWork(new_engine(standby.url))  # another manager, or this one after a restart
    with other.read() as tx:
        assert tx.cluster().epoch == after.epoch
    other.engine.dispose()
    world.close()


@pytest.fixture(scope="module")
def alone() -> Iterator[Server]:
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize(
    "state", ["25006", "25P03", "57P01", "57P02", "57P03", "08006", "53300", "53200", "40001", "55000"]
)
def test_all_that_a_failover_brings_is_an_outage(alone: Server, state: str) -> None:
    uow = UnitOfWork(new_engine(alone.url))
    with pytest.raises(UNAVAILABLE), uow.engine.begin() as connection:
        raise_there(connection, state)
    uow.engine.dispose()


@pytest.mark.parametrize("state", ["54000", "54001", "22001", "23505", "42P01"])
def test_what_no_waiting_mends_is_none(alone: Server, state: str) -> None:
    engine = new_engine(alone.url)
    with pytest.raises(DBAPIError) as raised, engine.begin() as connection:
        raise_there(connection, state)
    assert not isinstance(raised.value, UNAVAILABLE)
    engine.dispose()


def raise_there(connection: Connection, state: str) -> None:
    connection.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'there' USING ERRCODE = '{state}'; END $$"))


def test_a_primary_that_was_told_to_read_only_is_away_until_it_writes_again(alone: Server) -> None:
    world = World(alone.url)
    world.add_nodes("a")
    command(alone, "ALTER SYSTEM SET default_transaction_read_only = on")
    command(alone, "SELECT pg_reload_conf()")
    wait_for(lambda: command(alone, "SHOW default_transaction_read_only") == "on", "it only reads")
    with pytest.raises(UNAVAILABLE, match="read-only transaction"):
        world.submit(ring(tasks=1))
    command(alone, "ALTER SYSTEM RESET default_transaction_read_only")
    command(alone, "SELECT pg_reload_conf()")
    wait_for(lambda: command(alone, "SHOW default_transaction_read_only") == "off", "it writes")
    epoch = world.snapshot().epoch
    assert world.job(world.submit(ring(tasks=1))).state is JobState.QUEUED
    assert world.snapshot().epoch == epoch, "it is the same primary"
    world.close()
