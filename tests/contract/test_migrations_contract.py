"""The way from one schema to another, on both databases: nothing is lost, it leads back, many may go it at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from history_actors import malleable
from manager_world import World, full_mesh, ring
from moved_tasks import apart, ask, held_beside, state
from sqlalchemy import inspect, select, text
from sqlalchemy.engine import URL
from world_audit import audit

from ces_common.db import NoCluster, UnitOfWork, migrate, new_engine
from ces_common.db.engine import writing
from ces_common.db.migrate import alembic_config
from ces_common.db.schema import METADATA
from ces_common.db.tables import AllocationRow, JobRow, LeaseRow, NodeRow
from ces_manager.jobs.submission import of_tenant

NOW = datetime(2030, 5, 17, 12, 30, 15, 123456, tzinfo=UTC)


def test_models_and_migrations_agree(uow: UnitOfWork) -> None:
    with uow.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        found = inspect(connection)
        for table in METADATA.tables.values():
            assert {index["name"] for index in found.get_indexes(table.name)} >= {index.name for index in table.indexes}


def test_migrations_lead_back_too(url: URL) -> None:
    migrate(url)
    engine = new_engine(url)
    with writing(engine).begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
    engine.dispose()
    migrate(url)


OLD_ROWS = [
    "INSERT INTO nodes VALUES ('a', 1, 1, 0, '', '{}', 'process', 'none', '', '10.64.0.0/24', 0, 'U', false, 'ready',"
    " :t, 1)",
    "INSERT INTO node_leases VALUES ('a', 'b', :t, :t)",
    "INSERT INTO jobs VALUES ('j', 'n', 50, '{}', '{}', 'stop', '[]', '[]', 'planned', :t, :t, 0, true, NULL,"
    " NULL, 1, 0, :t, NULL, NULL, NULL, '', 1)",
    "INSERT INTO allocations VALUES ('x', 'j', 1, 'w-0', 0, 'a', '', 0, 1, 1, 0, 1, 'pending', NULL, NULL, NULL)",
    "INSERT INTO plans VALUES ('p', 'j', 1, '', 1, :t, '{}', '{}', '{}', '[]')",
    "INSERT INTO reservations VALUES ('j', 1, 's', 'd', 1, 1, 1, 1, '[]', true)",
]


def test_migrations_lose_no_rows(url: URL) -> None:
    """Rebuilding a table on SQLite would empty those that refer to it."""
    engine = new_engine(url)
    config = alembic_config()

    def run(step: Callable[[Config, str], None], revision: str) -> None:
        with writing(engine).begin() as connection:
            config.attributes["connection"] = connection
            step(config, revision)

    def rows() -> list[int]:
        tables = ("nodes", "node_leases", "jobs", "allocations", "plans", "reservations")
        with engine.connect() as connection:
            return [connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0 for table in tables]

    run(command.upgrade, "0001")
    with writing(engine).begin() as connection:
        for statement in OLD_ROWS:
            connection.execute(text(statement), {"t": "2030-01-01 00:00:00.000000"} if ":t" in statement else {})
    run(command.upgrade, "0015")
    with writing(engine).begin() as connection:
        connection.execute(text("UPDATE jobs SET idempotency_key = 'key'"))
    run(command.upgrade, "head")
    assert rows() == [1] * 6
    with UnitOfWork(engine).bare_write() as session:
        assert session.get_one(LeaseRow, "a").beats == 0
        assert session.get_one(NodeRow, "a").reclaimed is False
        job = session.get_one(JobRow, "j")
        assert (job.tenant, job.expected_s, job.preemption) == ("default", None, "stop")
        assert job.idempotency_key == of_tenant("default", "key")
        assert job.placed_at == datetime(2030, 1, 1, tzinfo=UTC), "since its plan was committed"
    run(command.downgrade, "0001")
    assert rows() == [1] * 6
    engine.dispose()


def test_running_jobs_get_cards_by_number(url: URL) -> None:
    """Each another one; a size that a job goes to uses those again that the job has."""
    world = World(url)
    world.add_nodes("a", "b", cpu=4000, gpu=3)
    world.put_topology(full_mesh(["a", "b"]))
    jobs = [world.submit(ring(f"j{i}", tasks=1, gpu=1)) for i in range(2)]
    for job in jobs:
        world.run(job, ["a"])
    grows = world.submit(malleable(high=2, gpu=1))
    world.run(grows, ["a"])
    assert world.resize(grows, 2, ["a", "b"]) is None
    before = held(world)
    with writing(world.uow.engine).begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0032")
        command.upgrade(config, "head")
    after = held(world)
    assert [(*place, len(cards), gpu) for *place, cards, gpu in after] == [
        (*place, len(cards), gpu) for *place, cards, gpu in before
    ]
    on_a = [cards for job, attempt, node, cards, _ in after if (job, node) == (grows, "a")]
    assert on_a[0] == on_a[1] != [], "at both sizes"
    audit(world)
    world.confirm(grows)
    audit(world)
    world.close()


def held(world: World) -> list[tuple[str, int, str, list[str], int]]:
    """Job, attempt, node, cards and GPUs of each allocation."""
    order = (AllocationRow.job, AllocationRow.attempt, AllocationRow.rank)
    with world.uow.read() as tx:
        rows = tx.session.scalars(select(AllocationRow).order_by(*order))
        return [(row.job, row.attempt, row.node, row.cards, row.gpu) for row in rows]


def test_any_number_may_migrate_at_once(url: URL) -> None:
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(migrate, url) for _ in range(4)]:
            done.result()
    engine = new_engine(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM cluster")) == 1
    engine.dispose()


def test_a_database_that_was_never_migrated_says_so(url: URL) -> None:
    engine = new_engine(url)
    with engine.begin() as connection:
        METADATA.create_all(connection)
    uow = UnitOfWork(engine)
    with pytest.raises(NoCluster), uow.write(NOW):
        pass
    with pytest.raises(NoCluster), uow.read() as tx:
        tx.cluster()
    engine.dispose()


def test_a_move_under_way_leaves_nothing_behind_where_its_table_goes(url: URL) -> None:
    """Back to before moves were known, and on again: the job runs where it was, and everything else is free."""
    world = World(url)
    world.add_nodes("a", "b", "c")
    world.put_topology(full_mesh(["a", "b", "c"]))
    job = world.submit(apart())
    world.run(job, ["a", "b"])
    ask(world, job, "w-0", "c")
    assert (state(world, job), held_beside(world, job)) == ("reserved", (1, 2))
    world.close()
    engine = new_engine(url)
    with writing(engine).begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0047")
        command.upgrade(config, "head")
    engine.dispose()
    world = World(url)
    world.restart()
    assert [each.node for each in world.job(job).allocations] == ["a", "b"]
    full = world.submit(ring("full", 4))
    assert world.commit(world.propose(full, ["c"])) is None
    audit(world)
    world.close()
