"""Users of applications who are elsewhere than the file says."""

from __future__ import annotations

from typing import Any

import pytest
from manager_world import World
from sqlalchemy import select

from ces_common.application import Location
from ces_common.db.tables import EventRow, NodeRow
from ces_common.jobfile import JobFile
from ces_common.messages.moves import MoveRequest
from ces_common.messages.profiles import NodeProfile, Position
from ces_manager.errors import Conflict, Invalid, NotFound
from ces_manager.jobs import commands
from ces_manager.jobs.users import NOT_BY_ITSELF, move_user
from ces_manager.plans.move import commit_move


def application(**more: Any) -> JobFile:
    task = {"name": "camera", "command": ["true"], "constraints": {"user": "cam"}}
    users = [{"name": "cam", "at": {"node": "a"}}]
    goals = {"objective": {"balance": 1.0}, "restart": {"scope": "task"}}
    return JobFile.model_validate({"name": "app", "tasks": [task], "users": users} | goals | more)


def moved(world: World, job: str, user: str, **at: Any) -> str | None:
    return world.write(lambda tx: move_user(tx, job, user, Location(**at)))


def test_readers_of_the_state_are_told(world: World) -> None:
    job = world.submit(application(adjust={}))
    before = world.snapshot().version
    assert moved(world, job, "cam", node="b") is None
    record = world.job(job)
    assert record.users[0].at == Location(node="b")
    assert record.version > before
    with world.uow.read() as tx:
        (event,) = tx.session.scalars(select(EventRow).where(EventRow.type == "ces.v1.user.moved"))
    assert event.job == job
    assert '"node":"b"' in event.body
    assert moved(world, job, "cam", node="b") == "user cam of job app is there already"


def test_a_position_leads_to_the_node_that_covers_it_and_is_not_told_in_events(world: World) -> None:
    with world.uow.write(world.now) as tx:
        node = tx.session.get_one(NodeRow, "c")
        node.profile = NodeProfile(position=Position(lat=51.05, lon=13.73), coverage=300.0)
    job = world.submit(application(adjust={}))
    assert moved(world, job, "cam", lat=51.051, lon=13.73) is None
    with pytest.raises(Invalid, match="at: no node covers its position; the nearest, c, is"):
        moved(world, job, "cam", lat=52.0, lon=13.73)
    with world.uow.read() as tx:
        (event,) = tx.session.scalars(select(EventRow).where(EventRow.type == "ces.v1.user.moved"))
    assert '"node":"c"' in event.body
    assert "51.05" not in event.body


def test_a_job_that_does_not_change_by_itself_says_so(world: World) -> None:
    job = world.submit(application())
    assert moved(world, job, "cam", node="b") == NOT_BY_ITSELF


def test_the_users_task_goes_to_where_its_user_is_and_nowhere_else(world: World) -> None:
    job = world.submit(application(adjust={}))
    world.run(job, ["a"])

    def asked(node: str) -> str | None:
        return world.write(lambda tx: commit_move(tx, job, MoveRequest(task="camera-0", to=node), []))

    with pytest.raises(Invalid, match="to: camera-0 runs at the access node of user cam, which is a"):
        asked("b")
    moved(world, job, "cam", node="b")
    assert asked("b") is None
    moving = world.job(job).moving
    assert moving is not None
    assert moving.beside is not None
    assert moving.beside.node == "b"


def test_refusals(world: World) -> None:
    job = world.submit(application())
    with pytest.raises(NotFound, match="job app has no user eve; its users are cam"):
        moved(world, job, "eve", node="b")
    with pytest.raises(Invalid, match="at: no node is named z"):
        moved(world, job, "cam", node="z")
    world.write(lambda tx: commands.cancel_job(tx, job))
    with pytest.raises(Conflict, match="job app is cancelled; its users are served no more"):
        moved(world, job, "cam", node="b")
