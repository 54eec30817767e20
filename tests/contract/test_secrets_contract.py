"""Which secrets are kept, and which node is given which of them, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confinements import TOGETHER
from manager_world import World, ring
from meshed_world import meshed_world
from sqlalchemy import event, text
from sqlalchemy.engine import URL

from ces_common.db.tables import NodeRow
from ces_common.db.uow import WriteTx
from ces_common.jobfile import JobFile
from ces_common.messages.records import AllocationRecord
from ces_common.messages.secrets import SecretsQuery
from ces_common.natsauth.secret_files import new_key
from ces_common.states import JobState
from ces_manager.errors import Conflict, Forbidden, Invalid, NotFound
from ces_manager.job_secrets import store
from ces_manager.job_secrets.delivery import Started, parcel_for
from ces_manager.job_secrets.keys import SecretKeys, Unreadable, parse_keys

NODES = ["a", "b"]
MARKER = b"marker"
OLD = new_key()
KEYS = parse_keys(OLD)


@pytest.fixture
def world(url: URL) -> Iterator[World]:
    with meshed_world(url, *NODES) as made:
        yield made


def put(world: World, name: str = "hub", value: bytes = MARKER, tenant: str = "default", by: str = "ci") -> None:
    world.write(lambda tx: store.put_secret(tx, KEYS, tenant, name, value, by))


def listed(world: World, tenants: list[str] | None = None, limit: int = 100, cursor: str | None = None) -> list[str]:
    """All pages."""
    with world.uow.read() as tx:
        page = store.list_secrets(tx, tenants=tenants, cursor=cursor, limit=limit)
    names = [f"{each.tenant}/{each.name}" for each in page.items]
    return names + (listed(world, tenants, limit, page.next) if page.next else [])


def needing(*names: str, **more: Any) -> JobFile:
    secrets = {f"file-{name}": {"from": name} for name in names}
    group = {"name": "w", "replicas": 2, "command": ["true"], "secrets": secrets}
    return JobFile.model_validate({"name": "needing", "tasks": [group], **more})


def starting(world: World, *names: str, **more: Any) -> tuple[str, AllocationRecord]:
    """A job that is starting, and its allocation on node a."""
    job = world.submit(needing(*names, **more))
    assert world.commit(world.propose(job, NODES)) is None
    world.network(job)
    return job, next(each for each in world.job(job).allocations if each.node == "a")


def ask(
    world: World, allocation: str, node: str = "a", incarnation: int = 1, keys: SecretKeys | None = KEYS
) -> dict[str, bytes]:
    with world.uow.read() as tx:
        parcel = parcel_for(tx, keys, node, SecretsQuery(allocation=allocation, incarnation=incarnation))
    assert parcel.public_key == f"U{node.upper():A<55}"
    assert "marker" not in repr(parcel)
    return parcel.files


def test_they_are_stored_replaced_listed_and_removed_and_lie_encrypted(world: World) -> None:
    for tenant, name in (("red", "b.two"), ("default", "hub"), ("red", "a"), ("blue", "z")):
        put(world, name, tenant=tenant)
    assert listed(world, limit=1) == ["blue/z", "default/hub", "red/a", "red/b.two"]
    assert listed(world, ["red"]) == ["red/a", "red/b.two"]
    put(world, "hub", b"other", by="anna")
    with world.uow.read() as tx:
        (one,) = store.list_secrets(tx, tenants=["default"], cursor=None, limit=10).items
        sealed = [bytes(row.sealed) for row in tx.session.execute(text("SELECT sealed FROM secrets"))]
    assert (one.name, one.updated_by, one.updated_at) == ("hub", "anna", world.now)
    assert len(sealed) == 4
    assert not any(MARKER in each for each in sealed)
    world.write(lambda tx: store.remove_secret(tx, "red", "a"))
    with pytest.raises(NotFound, match="tenant red has no secret a"):
        world.write(lambda tx: store.remove_secret(tx, "red", "a"))
    told = [kind for _, kind in world.events() if kind.startswith("secret")]
    assert told == ["secret.stored"] * 5 + ["secret.removed"]


def test_a_tenant_has_so_many_and_a_manager_without_a_key_keeps_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_OF_TENANT", 2)
    for name in ("one", "two", "two"):
        put(world, name)
    with pytest.raises(Conflict, match="tenant default has 2 secrets, which is all that it may have: remove some"):
        put(world, "three")
    put(world, "three", tenant="red")
    with pytest.raises(Conflict, match="CES_SECRETS_KEY_FILE"):
        world.write(lambda tx: store.put_secret(tx, None, "default", "one", b"x", "ci"))


def test_another_key_takes_over_and_the_one_before_may_go(world: World) -> None:
    put(world, "hub")
    put(world, "damaged")
    world.write(lambda tx: tx.session.execute(text("UPDATE secrets SET name = 'moved' WHERE name = 'damaged'")))
    fresh = new_key()
    both = parse_keys(fresh + OLD)
    with world.uow.read() as tx:
        assert store.has_former(tx, both)
        assert not store.has_former(tx, KEYS)
    assert world.write(lambda tx: store.reseal(tx, both)) == 1
    assert world.write(lambda tx: store.reseal(tx, both)) == 0
    job, allocation = starting(world, "hub")
    assert ask(world, allocation.id, keys=parse_keys(fresh)) == {"file-hub": MARKER}
    with pytest.raises(Unreadable, match="secret hub of tenant default was encrypted with a key that is not in"):
        ask(world, allocation.id, keys=KEYS)
    with pytest.raises(Unreadable, match="has no key to encrypt secrets"):
        ask(world, allocation.id, keys=None)
    world.cancel(job)


def test_a_job_names_secrets_of_its_own_tenant_only(world: World) -> None:
    put(world, "hub", tenant="red")
    with pytest.raises(Invalid) as refused:
        world.submit(needing("hub"))
    assert refused.value.detail == (
        "tasks[0].secrets.file-hub.from: no secret hub in tenant default: create it with "
        "`ces secret create hub --tenant default`"
    )
    world.submit(needing("hub", tenant="red"))
    with world.uow.read() as tx:
        assert '{"from":"hub"}' in tx.session.scalars(text("SELECT spec FROM jobs")).one()


def test_a_node_is_given_those_of_a_task_that_it_is_to_start_now(world: World) -> None:
    put(world, "hub")
    put(world, "bank", b"more")
    put(world, "hub", b"of red", tenant="red")
    job = world.submit(needing("hub", "bank", restart={"scope": "task"}))
    assert world.commit(world.propose(job, NODES)) is None
    mine = next(each for each in world.job(job).allocations if each.node == "a")
    refused = pytest.raises(Forbidden, match="no task with these secrets is to start on node")
    with refused:
        ask(world, mine.id)  # its network is not in place yet
    world.network(job)
    assert ask(world, mine.id) == {"file-hub": MARKER, "file-bank": b"more"}
    for node, incarnation, allocation in (("b", 1, mine.id), ("a", 2, mine.id), ("a", 1, "01" + "A" * 24)):
        with refused:
            ask(world, allocation, node, incarnation)
    with pytest.raises(Forbidden):
        ask(world, mine.id, "c")
    world.tell(job, "running", mine.task)
    with pytest.raises(Started, match=f"{mine.task} has started on node a already"):
        ask(world, mine.id)
    world.tell(job, "running")
    world.tell(job, "exited", mine.task, exit_code=3)
    assert world.job(job).state is JobState.RUNNING
    put(world, "hub", b"another")
    assert ask(world, mine.id, incarnation=2)["file-hub"] == b"another"
    with refused:
        ask(world, mine.id, incarnation=1)
    world.tell(job, "running", mine.task)
    with pytest.raises(Started):
        ask(world, mine.id, incarnation=2)
    world.cancel(job)
    with refused:
        ask(world, mine.id, incarnation=2)


def test_a_node_that_is_away_or_keeps_no_users_apart_is_given_none(world: World) -> None:
    put(world, "hub")
    job, allocation = starting(world, "hub")
    for change, why in (
        ({"state": "unreachable"}, "node a is unreachable"),
        ({"confinement": TOGETHER}, "node a gives no worker a user of its own: run agents as root, or with the docker"),
        ({"confinement": None}, "node a has not told yet how its workers are kept apart"),
    ):
        before = change_node(world, "a", change)
        with pytest.raises(Forbidden, match=why):
            ask(world, allocation.id)
        change_node(world, "a", before)
    assert ask(world, allocation.id) == {"file-hub": MARKER}
    world.cancel(job)


def change_node(world: World, name: str, change: dict[str, Any]) -> dict[str, Any]:
    """What was there before."""

    def act(tx: WriteTx) -> dict[str, Any]:
        row = tx.session.get_one(NodeRow, name)
        before = {key: getattr(row, key) for key in change}
        for key, value in change.items():
            setattr(row, key, value)
        return before

    return world.write(act)


def test_a_plan_that_puts_a_secret_where_others_can_read_it_is_refused(world: World) -> None:
    put(world, "hub")
    change_node(world, "b", {"confinement": TOGETHER})
    job = world.submit(needing("hub"))
    why = world.commit(world.propose(job, NODES))
    assert why is not None
    assert why.startswith("w-1 asks for secrets, and node b gives no worker a user of its own: run agents as root")
    world.cancel(job)


def test_those_that_are_listed_stay_encrypted_in_the_database(world: World) -> None:
    put(world, "hub")
    asked: list[str] = []
    event.listen(world.uow.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    assert listed(world) == ["default/hub"]
    assert any("secrets" in each for each in asked)
    assert not [each for each in asked if "sealed" in each]


def test_a_former_attempt_is_given_none(world: World) -> None:
    put(world, "hub")
    job, former = starting(world, "hub")
    world.write(lambda tx: tx.session.execute(text("UPDATE jobs SET attempt = 2")))
    with pytest.raises(Forbidden):
        ask(world, former.id)
    world.write(lambda tx: tx.session.execute(text("UPDATE jobs SET attempt = 1")))
    world.cancel(job)


def test_one_that_was_removed_says_so(world: World) -> None:
    put(world, "hub")
    job, allocation = starting(world, "hub")
    world.write(lambda tx: store.remove_secret(tx, "default", "hub"))
    with pytest.raises(NotFound, match="no secret hub in tenant default: create it with `ces secret create hub"):
        ask(world, allocation.id)
    world.cancel(job)


def test_a_job_without_secrets_is_what_it_was(world: World) -> None:
    job = world.submit(ring(tasks=2))
    assert all(task.secrets == {} for task in world.job(job).tasks)
