"""What both databases must give alike: schema, types, locks, numbering, consistent looks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Barrier, Event

import pytest
from databases import KINDS
from manager_world import World, full_mesh, ring
from sqlalchemy import select, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError, StatementError
from world_audit import audit

from ces_common.db import UnitOfWork, database_url
from ces_common.db.migrate import NoMigrations, migrations_folder
from ces_common.db.outbox import ALL, EventFilter, events_after, mark_published, unpublished_events
from ces_common.db.tables import (
    AllocationRow,
    EventRow,
    HopRow,
    InboxRow,
    JobRow,
    LeaseRow,
    MediumRow,
    PlanRow,
    ReservationRow,
)
from ces_common.messages.events import TopologyChanged, parse_event
from ces_common.messages.records import SnapshotQuery
from ces_common.states import AllocationState, JobState
from ces_manager.nodes.revocation import revoked_keys
from ces_manager.retention import Cutoffs, has_aged, prune
from ces_manager.timeouts import Timeouts

NOW = datetime(2030, 5, 17, 12, 30, 15, 123456, tzinfo=UTC)
CHANGED = TopologyChanged(links=1, media=0)


def test_a_forgotten_node_leaves_history_and_no_lease(url: URL) -> None:
    world = World(url)
    world.add_nodes("a", "b")
    job = world.submit(ring(tasks=1, disconnect="keep"))
    world.run(job, ["a"])
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b")
    world.expire()
    assert world.forget("a") == [job]
    assert world.job(job).state is JobState.QUEUED
    with world.uow.read() as tx:
        assert tx.session.scalars(select(LeaseRow.node)).all() == ["b"]
        assert tx.session.scalars(select(AllocationRow.node)).all() == ["a"]
        assert tx.session.scalars(select(AllocationRow.state)).all() == [AllocationState.LOST]
        assert revoked_keys(tx) == ["UA" + "A" * 54]
    world.run(job, ["b"])
    audit(world)
    world.close()


def test_settled_jobs_go_with_all_that_they_had(url: URL) -> None:
    world = World(url, Timeouts(prune_jobs=2, prune_rows=3))
    world.add_nodes("a", "b")
    world.put_topology(full_mesh(["a", "b"]))
    settled = [world.submit(ring(f"settled-{i}", tasks=2), key=f"key-{i}") for i in range(5)]
    for job in settled:
        world.run(job, ["a", "b"])
        world.tell(job, "exited", exit_code=0)
        assert world.job(job).state is JobState.SUCCEEDED
    held, runs = world.submit(ring("held", tasks=2)), world.submit(ring("runs", tasks=2))
    for job in (held, runs):
        world.run(job, ["a", "b"])
    world.cancel(held)  # over, but its agents have not confirmed
    known = world.snapshot()
    world.wait(world.timeouts.keep_jobs_s - 60)
    late = world.submit(ring("late", tasks=2))
    world.cancel(late)
    world.wait(120)
    assert not world.snapshot(SnapshotQuery(since=known.version, epoch=known.epoch)).full
    assert world.prune() >= len(settled)
    with world.uow.read() as tx:
        left = {held, runs, late}
        assert set(tx.session.scalars(select(JobRow.id))) == left
        for table in (AllocationRow, PlanRow, ReservationRow):
            assert set(tx.session.scalars(select(table.job))) == left - {late}
    ancient = SnapshotQuery(since=known.version - 30, epoch=known.epoch)
    told = world.snapshot(ancient.model_copy(update={"removals": True}))
    assert not told.full
    assert set(told.removed_jobs) & set(settled) == set(told.removed_jobs) > set(), "it has not heard that they ended"
    assert not world.snapshot(SnapshotQuery(since=known.version, epoch=known.epoch)).full
    world.confirm(held)
    assert world.submit(ring("settled-0", tasks=2), key="key-0") not in settled
    world.close()


def test_a_transaction_has_one_version_and_only_if_it_changes_something(uow: UnitOfWork) -> None:
    with uow.write(NOW):
        pass
    with uow.read() as tx:
        assert tx.cluster().version == 0
    with uow.write(NOW) as tx:
        assert (tx.version, tx.version) == (1, 1)
    with suppress(ZeroDivisionError), uow.write(NOW) as tx:
        assert tx.version == 2
        tx.emit("topology", "changed", "topology", CHANGED)
        raise ZeroDivisionError
    with uow.read() as tx:
        assert (tx.cluster().version, tx.cluster().sequence) == (1, 0)


def test_events_are_numbered_without_a_gap_by_concurrent_writers(uow: UnitOfWork) -> None:
    def write(number: int) -> None:
        for turn in range(5):
            with uow.write(NOW) as tx:
                for _ in range(3):
                    tx.emit("topology", "changed", f"t-{number}-{turn}", CHANGED)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    with uow.read() as tx:
        events = events_after(tx, 0, ALL, 100)
    assert [event.sequence for event in events] == list(range(1, 61))
    subjects = [event.bus_subject for event in events]
    assert all(len(set(subjects[i : i + 3])) == 1 for i in range(0, 60, 3)), "two transactions are mixed"


def test_an_event_is_published_once_it_is_marked(uow: UnitOfWork) -> None:
    with uow.write(NOW) as tx:
        for i in range(3):
            tx.emit("topology", "changed", f"t{i}", CHANGED, job="01ARZ3NDEKTSV4RRFFQ69G5FAV" if i else None)
    with uow.read() as tx:
        first = unpublished_events(tx, 2)
    parsed = parse_event(first[0].body.encode())
    assert (parsed.id, parsed.sequence, parsed.time, parsed.data) == (first[0].id, 1, NOW, CHANGED)
    assert parsed.bus_subject == first[0].bus_subject
    with uow.bare_write() as session:
        mark_published(session, [event.sequence for event in first])
        mark_published(session, [])
    with uow.read() as tx:
        assert [event.sequence for event in unpublished_events(tx, 9)] == [3]
        assert [event.sequence for event in events_after(tx, 1, ALL, 9)] == [2, 3]
        of_one = EventFilter(job="01ARZ3NDEKTSV4RRFFQ69G5FAV")
        assert [event.sequence for event in events_after(tx, 0, of_one, 1)] == [2]
    timeouts = Timeouts(prune_rows=1)
    for age, dropped in [(0, 0), (1, 1), (1, 1), (1, 0)]:  # the third is not published
        cut = Cutoffs(NOW, NOW + timedelta(days=age), NOW, NOW, NOW)
        with uow.read() as tx:
            assert has_aged(tx, cut) is bool(dropped)
        assert prune(uow, cut, timeouts, NOW) == dropped
    with uow.read() as tx:
        assert tx.session.scalars(select(EventRow.sequence)).all() == [3]


def test_a_message_is_consumed_once_also_by_two_at_a_time(uow: UnitOfWork) -> None:
    start = Barrier(2)

    def consume(_: int) -> bool:
        start.wait(60)
        with uow.write(NOW) as tx:
            return tx.first_time("message")

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(consume, range(2))) == [False, True]
    with suppress(ZeroDivisionError), uow.write(NOW) as tx:
        assert tx.first_time("undone")
        raise ZeroDivisionError
    with uow.write(NOW) as tx:
        assert tx.first_time("undone")


def test_a_writer_decides_on_what_the_one_before_committed(uow: UnitOfWork) -> None:
    """The lost update that a lock taken too late would allow."""

    def add(_: int) -> None:
        with uow.write(NOW) as tx:
            row = tx.session.get(MediumRow, "m")
            if row is None:
                tx.session.add(MediumRow(name="m", bandwidth=1))
            else:
                row.bandwidth += 1

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(20)))
    with uow.read() as tx:
        assert tx.session.get_one(MediumRow, "m").bandwidth == 20


def test_a_look_sees_one_moment_and_does_not_wait_for_writers(uow: UnitOfWork) -> None:
    with uow.write(NOW) as tx:
        tx.session.add(MediumRow(name="m", bandwidth=1))
    looked, written = Event(), Event()

    def write() -> None:
        looked.wait(60)
        with uow.write(NOW) as tx:
            tx.session.get_one(MediumRow, "m").bandwidth = tx.version + 100
        written.set()

    with ThreadPoolExecutor(1) as threads:
        writing_ = threads.submit(write)
        with uow.read() as tx:
            version = tx.cluster().version
            looked.set()
            assert written.wait(60)
            assert tx.session.scalar(text("SELECT bandwidth FROM media")) == 1
            assert tx.session.scalar(text("SELECT version FROM cluster")) == version
        writing_.result()


@pytest.mark.parametrize("url", KINDS[1:], indirect=True)
def test_a_look_cannot_change_postgres(uow: UnitOfWork) -> None:
    with pytest.raises(StatementError, match="read-only"), uow.read() as tx:
        tx.session.add(MediumRow(name="m", bandwidth=1))


def test_values_come_back_as_they_went_in(url: URL) -> None:
    world = World(url)
    world.now = NOW.astimezone(timezone(timedelta(hours=5)))
    world.add_nodes("a", "b", memory=2**40)
    world.put_topology(full_mesh(["a", "b"]))
    job = world.submit(ring(tasks=2))
    world.run(job, ["a", "b"])
    record = world.job(job)
    assert record.submitted_at == NOW
    assert record.state is JobState.RUNNING
    assert record.allocations[0].state is AllocationState.RUNNING
    assert record.tasks == ring(tasks=2).expand_tasks()
    assert record.flows == ring(tasks=2).expand_flows()
    assert world.snapshot().nodes[0].memory == 2**40
    audit(world)
    world.close()
    with pytest.raises(StatementError, match="no time zone"), world.uow.write(NOW.replace(tzinfo=None)) as tx:
        tx.first_time("m")


def test_text_that_a_worker_made_up_is_stored(url: URL) -> None:
    """Postgres refuses the zero character; a report that cannot be stored would come again for ever."""
    world = World(url)
    world.add_nodes("a")
    job = world.submit(ring(tasks=1, restart={"policy": "never"}))
    world.run(job, ["a"])
    world.tell(job, "exited", exit_code=1, reason="\0" + "x" * 10**5)
    record = world.job(job)
    assert record.state is JobState.FAILED
    assert record.reason is not None
    assert record.reason.startswith("w-0 on a exited with code 1: \N{REPLACEMENT CHARACTER}x")
    assert len(record.reason) < 10**4
    world.close()


def test_wrong_rows_are_refused(uow: UnitOfWork) -> None:
    with uow.write(NOW) as tx:
        tx.session.add(InboxRow(id="m", consumed_at=NOW))
    with pytest.raises(IntegrityError), uow.write(NOW) as tx:
        tx.session.add(InboxRow(id="m", consumed_at=NOW))
    unknown_medium = "INSERT INTO links (src, dst, bandwidth, kind, medium) VALUES ('a', 'b', 1, 'veth', 'none')"
    with pytest.raises(IntegrityError), uow.write(NOW) as tx:
        tx.session.execute(text(unknown_medium))
    with pytest.raises(IntegrityError), uow.write(NOW) as tx:
        tx.session.add(HopRow(number=1, src="a", dst="b", rate=None))


def test_urls_that_cannot_work_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert database_url("postgresql://u@h/d").drivername == "postgresql+psycopg"
    for wrong in ("sqlite://", "mysql://u@h/d"):
        with pytest.raises(ValueError):
            database_url(wrong)
    monkeypatch.setenv("CES_MIGRATIONS", str(tmp_path))
    with pytest.raises(NoMigrations):
        migrations_folder()
