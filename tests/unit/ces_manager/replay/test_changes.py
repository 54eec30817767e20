"""From change to change, and to the last failure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from manager_world import World, ring, sqlite_url
from meshed_world import meshed_world

from ces_common.db.outbox import latest_event
from ces_common.messages.events import EVENTS, event_type
from ces_common.messages.reports import LinkReport, LinkStatus
from ces_manager.measurements import Measurements
from ces_manager.network.link_states import take_reports
from ces_manager.network.link_views import link_view
from ces_manager.nodes import operations
from ces_manager.replay import changes
from ces_manager.replay.changes import CHANGES, change_after, change_before, last_failure

NODES = ["a", "b", "c"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with meshed_world(sqlite_url(tmp_path), *NODES, cpu=1500) as made:
        yield made


def last(world: World) -> int:
    with world.uow.read() as tx:
        return latest_event(tx)


def failure(world: World, tenants: Collection[str] | None = None, oldest: int = 0) -> int | None:
    with world.uow.read() as tx:
        return last_failure(tx, oldest, latest_event(tx), tenants)


def say(world: World, state: str, reason: str | None = None) -> int:
    """The event that an agent's word of its link leads to."""
    world.wait(1)
    status = LinkStatus.model_validate({"peer": "b", "state": state, "reason": reason})
    world.write(lambda tx: take_reports(tx, [LinkReport(node="a", links=[status])]))
    return last(world)


def last_up(world: World, src: str = "a", dst: str = "b") -> int | None:
    with world.uow.read() as tx:
        return link_view(tx, Measurements(), src, dst).last_up


def test_every_kind_of_change_is_one_that_is_told() -> None:
    known = {event_type(*kind) for kind in EVENTS}
    assert set(CHANGES) <= known
    told_only = {"waiting", "deadline", "judged", "proposed", "refused", "rejected", "preparing", "packed", "copied"}
    others = {name.removeprefix("ces.v1.") for name in known - set(CHANGES)}
    assert {name for name in others if name.split(".")[1] not in told_only} == {
        "checkpoint.restored", "network.ready", "part.committed", "preemption.committed", "secret.removed",
        "secret.stored", "session.begun", "session.ended", "token.created", "token.revoked", "user.moved",
    }  # fmt: skip


def test_what_changes_nothing_is_stepped_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    down = say(world, "down")
    first = world.submit(ring("first"))
    submitted = last(world)
    assert world.commit(world.propose(first, NODES)) is not None, "rejected"
    rejected = last(world)
    up = say(world, "up")
    with world.uow.read() as tx:
        assert change_after(tx, down) == change_before(tx, submitted) == submitted
        assert submitted < rejected < up
        assert change_before(tx, rejected) == submitted
        assert change_after(tx, submitted) == up
        assert change_after(tx, up) is None
        monkeypatch.setattr(changes, "FAR", rejected - submitted)
        assert change_before(tx, rejected) is None, "too far away"


def test_the_last_failure_is_a_link_or_node_that_went_down_or_a_job_that_failed(world: World) -> None:
    assert failure(world) is None
    down = say(world, "down", reason='it said "state":"up"')
    say(world, "up", reason='"state":"down"')
    for change in (operations.cordon, operations.uncordon):
        world.write(lambda tx, change=change: change(tx, "b"))
    assert failure(world) == down
    assert failure(world, oldest=down) is None, "what was before history began cannot be seen"
    job = world.submit(ring("fails", tenant="red", restart={"policy": "never"}))
    world.run(job, NODES)
    world.tell(job, "exited", exit_code=1)
    (failed,) = (number for number, what in world.events() if what == "job.failed")
    assert failure(world) == failure(world, ["red"]) == failed
    assert failure(world, ["blue"]) == down


def test_a_link_that_is_down_knows_the_moment_before(world: World) -> None:
    assert last_up(world) is None
    before = last(world)
    down = say(world, "down")
    assert down > before
    world.wait(1)
    world.submit(ring("later"))
    assert last_up(world) == before
    assert last_up(world, "b", "a") is None
    say(world, "up")
    assert last_up(world) is None
