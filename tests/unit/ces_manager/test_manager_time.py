"""What silence, ended leases and missed deadlines bring about; nodes that join, drain and come back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from manager_world import START, World, audit, full_mesh, ring, sqlite_url
from sqlalchemy import select

from ces_common.db.tables import EventRow, InboxRow, JoinTokenRow, LeaseRow
from ces_common.messages.api import JoinRequest, JoinToken, JoinTokenRequest, TopologyFile
from ces_common.states import AllocationState, JobState
from ces_manager import cluster, jobs, views
from ces_manager.errors import Forbidden, Invalid, NotFound
from ces_manager.liveness import Vigil
from ces_manager.measurements import Measurements
from ces_manager.ticking import Due, what_is_due

NODES = ["a", "b", "c", "d"]
J, A = JobState, AllocationState
KEYS = ["U" + letter * 55 for letter in "ABC"]
NOTHING = Due()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(sqlite_url(tmp_path))
    made.add_nodes(*NODES)
    made.put_topology(full_mesh(NODES))
    yield made
    audit(made)
    made.close()


def node_states(world: World) -> dict[str, str]:
    return {node.name: node.state for node in world.snapshot().nodes}


def test_a_silent_node_gets_no_work_until_it_is_heard(world: World) -> None:
    assert world.tick() == NOTHING
    world.wait(world.policy.unreachable_after_s + 1)
    world.beat("a", "b", "c")
    assert world.tick().silent == ["d"]
    assert node_states(world)["d"] == "unreachable"
    job = world.submit(ring(tasks=1))
    assert world.commit(world.propose(job, ["d"])) == "node d is unreachable"
    assert world.tick() == NOTHING
    assert world.beat("d", "stranger") == {"stranger"}
    assert node_states(world)["d"] == "ready"
    assert world.commit(world.propose(job, ["d"])) is None


def test_a_job_moves_only_when_the_lease_and_the_margin_have_passed(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    world.wait(world.policy.lease_s + world.policy.margin_s)
    world.beat("a", "b", "d")
    assert world.tick() == Due(silent=["c"])
    assert world.job(job).state is J.RUNNING
    world.wait(1)
    assert world.tick().lost == ["c"]
    record = world.job(job)
    assert record.state is J.RESCHEDULING
    assert [a.state for a in record.allocations] == [A.STOPPING, A.STOPPING, A.LOST]
    world.confirm(job)
    record = world.job(job)
    assert (record.state, record.attempt) == (J.QUEUED, 2)
    assert record.reason == "node c was not heard for longer than its lease"
    world.run(job, ["a", "b", "d"])
    assert world.tick() == NOTHING


def test_a_stopping_allocation_is_released_when_its_node_is_lost(world: World) -> None:
    job = world.submit(ring(tasks=1))
    world.run(job, ["a"])
    world.cancel(job)
    world.wait(world.policy.lease_s + world.policy.margin_s + 1)
    world.beat("b", "c", "d")
    world.tick()
    assert world.job(job).state is J.CANCELLED
    assert world.job(job).released
    assert world.snapshot().jobs == []


def test_a_job_that_keeps_running_is_never_moved_behind_its_back(world: World) -> None:
    job = world.submit(ring(disconnect="keep"))
    world.run(job, NODES)
    world.wait(10 * world.policy.lease_s)
    assert world.tick() == Due(silent=NODES)
    assert world.job(job).state is J.RUNNING
    assert world.tick() == NOTHING
    world.beat(*NODES)
    world.tell(job, "exited", exit_code=0)
    assert world.job(job).state is J.SUCCEEDED


def test_a_state_that_outlives_its_deadline_is_given_up_a_few_times(world: World) -> None:
    job = world.submit(ring())
    for attempt in range(1, world.policy.max_late + 1):
        assert world.job(job).attempt == attempt
        assert world.commit(world.propose(job, NODES)) is None
        world.wait(world.policy.planned_s + 1)
        world.beat(*NODES)
        assert list(world.tick().late) == [job]
    record = world.job(job)
    assert record.state is J.FAILED
    assert record.reason == "planned for more than 60 s, the 3. deadline missed in a row"
    assert record.released


def test_deadlines_are_counted_only_in_a_row(world: World) -> None:
    job = world.submit(ring())
    for _ in range(2):
        assert world.commit(world.propose(job, NODES)) is None
        world.network(job)
        world.wait(world.policy.starting_s + 1)
        world.beat(*NODES)
        world.tick()
        world.confirm(job)
    world.run(job, NODES)
    world.wait(10 * world.policy.starting_s)
    world.beat(*NODES)
    assert world.tick() == NOTHING
    world.tell(job, "exited", "w-0", exit_code=1)
    world.wait(world.policy.starting_s + 1)
    world.beat(*NODES)
    assert list(world.tick().late) == [job]
    assert world.job(job).state is J.RESCHEDULING


def test_a_restart_gets_its_own_time_to_start(world: World) -> None:
    job = world.submit(ring())
    assert world.commit(world.propose(job, NODES)) is None
    world.network(job)
    world.wait(world.policy.starting_s - 1)
    world.tell(job, "exited", "w-0", exit_code=1)
    world.wait(2)
    world.beat(*NODES)
    assert world.tick() == NOTHING
    assert world.job(job).state is J.STARTING


def test_draining_moves_jobs_and_admits_no_more(world: World) -> None:
    job = world.submit(ring())
    world.run(job, NODES)
    world.write(lambda tx: cluster.drain(tx, "a"))
    assert world.job(job).state is J.RESCHEDULING
    world.confirm(job)
    assert world.commit(world.propose(job, NODES)) == "node a is cordoned"
    assert world.commit(world.propose(job, NODES[1:])) is None
    world.write(lambda tx: cluster.uncordon(tx, "a"))
    assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) is None
    with pytest.raises(NotFound):
        world.write(lambda tx: cluster.drain(tx, "nobody"))


def test_a_smaller_topology_gives_up_the_less_important_jobs_only(world: World) -> None:
    first, urgent = world.submit(ring(tasks=2, priority=10)), world.submit(ring(tasks=2, priority=90))
    elsewhere = world.submit(ring(tasks=2))
    world.run(first, ["a", "b"])
    world.run(urgent, ["a", "b"])
    world.run(elsewhere, ["c", "d"])
    world.put_topology(full_mesh(["a", "b", "c", "d"], "15Mbit"))
    assert [world.job(job).state for job in (first, urgent, elsewhere)] == [J.RESCHEDULING, J.RUNNING, J.RUNNING]
    world.confirm(first)
    world.put_topology(full_mesh(["a", "b", "c"], "100Mbit"))
    assert world.job(elsewhere).state is J.RESCHEDULING
    assert world.job(elsewhere).reason == "link c -> d is gone"
    world.confirm(elsewhere)


@pytest.mark.parametrize(
    ("file", "field"),
    [
        ({"links": [{"src": "a", "dst": "a", "bandwidth": 1}]}, "links[0]"),
        ({"links": [{"src": "a", "dst": "b", "bandwidth": 0}]}, "links[0].bandwidth"),
        ({"links": [{"src": x, "dst": y, "bandwidth": 1} for x, y in ("ab", "ba")]}, "links[1]"),
        ({"links": [{"src": "a", "dst": "b", "bandwidth": 1, "medium": "air"}]}, "links[0].medium"),
        ({"media": [{"name": "air", "bandwidth": 1}] * 2}, "media[1].name"),
    ],
)
def test_a_wrong_topology_is_refused_whole(world: World, file: dict[str, object], field: str) -> None:
    before = world.snapshot()
    with pytest.raises(Invalid) as refused:
        world.put_topology(TopologyFile.model_validate(file))
    assert refused.value.field == field
    assert world.snapshot() == before


def request(token: JoinToken, name: str, key: str = KEYS[0], **more: object) -> JoinRequest:
    return JoinRequest.model_validate(
        {"token": token.token, "name": name, "public_key": key, "cpu": 1000, "memory": 2**30, **more}
    )


def test_a_token_admits_one_key_once(world: World) -> None:
    token = world.write(lambda tx: cluster.create_token(tx, JoinTokenRequest()))
    joined = world.write(lambda tx: cluster.join_node(tx, request(token, "new")))
    assert joined.subnet == "10.64.4.0/24"
    assert node_states(world)["new"] == "unreachable"
    world.beat("new")
    assert node_states(world)["new"] == "ready"
    again = world.write(lambda tx: cluster.join_node(tx, request(token, "new", cpu=500)))
    assert (again.subnet, again.cpu) == (joined.subnet, 500)
    for other in (request(token, "new", KEYS[1]), request(token, "second")):
        with pytest.raises(Forbidden):
            world.write(lambda tx, other=other: cluster.join_node(tx, other))


def test_tokens_expire_and_may_be_for_one_name(world: World) -> None:
    token = world.write(lambda tx: cluster.create_token(tx, JoinTokenRequest(node="e", ttl_s=10)))
    with pytest.raises(Forbidden, match="not for node f"):
        world.write(lambda tx: cluster.join_node(tx, request(token, "f")))
    for wrong in ({"host_address": "::no"}, {"arch": "\0"}):
        with pytest.raises(Invalid, match=next(iter(wrong))):
            world.write(lambda tx, wrong=wrong: cluster.join_node(tx, request(token, "e", **wrong)))
    world.wait(11)
    with pytest.raises(Forbidden, match="expired"):
        world.write(lambda tx: cluster.join_node(tx, request(token, "e")))
    forged = token.model_copy(update={"token": "guess"})
    with pytest.raises(Forbidden, match="not known"):
        world.write(lambda tx: cluster.join_node(tx, request(forged, "e")))
    assert "e" not in node_states(world)


@pytest.mark.parametrize("step", [timedelta(days=400), timedelta(days=-400)])
def test_a_clock_that_is_set_ends_no_lease_and_no_wait(world: World, step: timedelta) -> None:
    job, waiting = world.submit(ring()), world.submit(ring())
    world.run(job, NODES)
    assert world.commit(world.propose(waiting, NODES)) is None
    world.look()
    world.now += step
    assert world.tick() == NOTHING
    world.wait(world.policy.unreachable_after_s - 1)
    world.beat(*NODES)  # what is heard counts, whatever the time of day is now
    world.wait(world.policy.unreachable_after_s - 1)
    assert world.tick() == NOTHING
    assert world.job(job).state is J.RUNNING
    with world.uow.read() as tx:
        assert tx.session.get_one(LeaseRow, "a").heard_at.date() == (START + step).date()
    world.wait(world.policy.lease_s + world.policy.margin_s)
    assert world.tick().lost == NODES[:3]


def test_a_restarted_manager_gives_everybody_a_whole_lease_again(world: World) -> None:
    job, waiting = world.submit(ring(tasks=1)), world.submit(ring(tasks=1))
    world.run(job, ["a"])
    assert world.commit(world.propose(waiting, ["b"])) is None
    world.wait(10 * world.policy.lease_s)
    world.restart()
    assert world.tick() == NOTHING
    world.wait(world.policy.planned_s + 1)
    world.beat("b", "c", "d")
    due = world.tick()
    assert (due.silent, due.lost, list(due.late)) == (["a"], ["a"], [waiting])


def test_two_managers_judge_each_by_its_own_clock(world: World) -> None:
    """The clock of the second one is ahead by days; it sees what the first one wrote all the same."""
    world.run(world.submit(ring(tasks=1)), ["a"])
    other = Vigil()

    def seen_by_the_other() -> Due:
        with world.uow.read() as tx:
            return what_is_due(tx, world.policy, other, lambda: world.steady + 10**6)

    assert seen_by_the_other() == NOTHING
    for _ in range(6):
        world.wait(world.policy.unreachable_after_s)
        world.beat(*NODES)
        assert seen_by_the_other() == NOTHING
    world.wait(world.policy.lease_s + world.policy.margin_s + 1)
    assert seen_by_the_other() == Due(silent=NODES, lost=["a"])
    assert world.tick() == Due(silent=NODES, lost=["a"])
    assert seen_by_the_other() == NOTHING


@pytest.mark.parametrize("scope", ["task", "gang"])
def test_a_worker_that_does_not_start_again_is_not_waited_for_without_end(world: World, scope: str) -> None:
    job = world.submit(ring(restart={"scope": scope, "max": 9}))
    world.run(job, NODES)
    if scope == "gang":  # restarted while paused: nothing starts before it is resumed
        world.write(lambda tx: jobs.pause_job(tx, job))
    world.tell(job, "exited", "w-1", exit_code=1)
    world.wait(world.policy.starting_s - 1)
    world.beat(*NODES)
    if scope == "gang":
        assert world.job(job).state is J.PAUSED
        world.wait(world.policy.starting_s)
        world.beat(*NODES)
        assert world.tick() == NOTHING
        world.write(lambda tx: jobs.resume_job(tx, job))
        world.wait(world.policy.starting_s - 1)
        world.beat(*NODES)
    assert world.tick() == NOTHING
    world.wait(2)
    world.beat(*NODES)
    assert list(world.tick().late) == [job]
    record = world.job(job)
    assert record.state is J.RESCHEDULING
    name = "w-0 on a" if scope == "gang" else "w-1 on b"
    assert record.reason == f"{name} has not started again for more than {world.policy.starting_s:.0f} s"
    world.confirm(job)
    assert world.job(job).state is J.QUEUED


def test_each_start_of_a_worker_has_its_own_time(world: World) -> None:
    job = world.submit(ring(restart={"scope": "task", "max": 9}))
    world.run(job, NODES)
    world.tell(job, "exited", "w-0", exit_code=1)
    world.wait(world.policy.starting_s - 1)
    world.tell(job, "exited", "w-0", exit_code=1)
    world.tell(job, "exited", "w-2", exit_code=1)
    world.wait(2)
    world.beat(*NODES)
    assert world.tick() == NOTHING
    world.tell(job, "running", "w-0")
    world.wait(world.policy.starting_s)
    world.beat(*NODES)
    assert world.tick().late[job].why.startswith("w-2 on c")


def test_history_is_dropped_when_it_is_old_and_published(world: World) -> None:
    """With it go the ids of consumed messages and the join tokens that have ended."""
    with world.uow.bare_write() as session:
        session.query(EventRow).update({"published": True})
    world.submit(ring())  # not published: it must stay, however old
    world.write(lambda tx: tx.first_time("long ago"))
    token = world.write(lambda tx: cluster.create_token(tx, JoinTokenRequest(ttl_s=3600)))
    world.write(lambda tx: cluster.join_node(tx, request(token, "new")))
    with world.uow.bare_write() as session:
        session.query(EventRow).filter(EventRow.type == "ces.v1.node.changed").update({"published": True})
    assert world.prune() == 0
    world.wait(world.policy.keep_messages_s + 1)
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


def forget_history(world: World) -> None:
    """So that the audit of numbers, which knows no pruning, begins anew."""
    with world.uow.bare_write() as session:
        session.query(EventRow).delete()
    with world.uow.write(world.now) as tx:
        tx.cluster().sequence = 0


def test_lists_page_by_cursor(world: World) -> None:
    for i in range(5):
        world.wait(1)
        world.submit(ring(f"job-{i}"))
    with world.uow.read() as tx:
        first = views.list_jobs(tx, cursor=None, limit=3, state=None, name=None)
        rest = views.list_jobs(tx, cursor=first.next, limit=3, state=J.QUEUED, name=None)
        assert [job.name for job in (*first.items, *rest.items)] == [f"job-{i}" for i in (4, 3, 2, 1, 0)]
        assert rest.next is None
        nodes = views.list_nodes(tx, Measurements(), cursor=None, limit=3)
        assert [n.name for n in views.list_nodes(tx, Measurements(), cursor=nodes.next, limit=3).items] == ["d"]
        links = views.list_links(tx, Measurements(), cursor=None, limit=10)
        assert len(views.list_links(tx, Measurements(), cursor=links.next, limit=10).items) == 2
        with pytest.raises(Invalid):
            views.list_links(tx, Measurements(), cursor="x", limit=1)
