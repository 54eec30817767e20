from __future__ import annotations

from typing import Any

import pytest
from manager_world import World, ring

from ces_common.db.region_tables import GuestRow
from ces_common.jobfile import JobFile
from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.regions import HOLD_S, FateAnswer, GuestJobQuery, HoldQuery, RemoteJob
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager.errors import Invalid, NotFound
from ces_manager.nodes import operations
from ces_manager.plans.refusal import note_refusal
from ces_manager.regions import guests
from ces_manager.regions.held import due, end_holds

FILE = ring(tasks=2, regions=["any"])


def hold(world: World, file: JobFile = FILE, *, home: str = "r1", attempt: int = 1) -> FateAnswer:
    asked = HoldQuery(home=home, job="job-1", attempt=attempt, file=file)
    return world.write(lambda tx: guests.hold(tx, asked, QueueFile()))


def ref(answer: FateAnswer, *, home: str = "r1", attempt: int = 1) -> GuestJobQuery:
    return GuestJobQuery(home=home, job="job-1", attempt=attempt, remote=answer.remote or "")


def placed(world: World) -> FateAnswer:
    """A held job with its place."""
    asked = hold(world)
    assert asked.fate == "waiting"
    assert asked.remote is not None
    assert world.commit(world.propose(asked.remote, ["a", "b"])) is None
    answer = hold(world)
    assert answer == FateAnswer(fate="held", remote=asked.remote)
    return answer


def state(world: World, answer: FateAnswer) -> JobState:
    assert answer.remote is not None
    return world.job(answer.remote).state


def test_a_held_job_has_its_place_and_starts_nothing_before_it_is_committed(owner: World) -> None:
    held = placed(owner)
    assert held.remote is not None
    owner.network(held.remote)
    assert state(owner, held) is JobState.PREPARING
    assert owner.write(lambda tx: guests.commit(tx, ref(held))).fate == "committed"
    assert state(owner, held) is JobState.STARTING  # its network was in place already
    assert owner.write(lambda tx: guests.commit(tx, ref(held))).fate == "committed"  # an answer was lost
    owner.tell(held.remote, "running")
    assert state(owner, held) is JobState.RUNNING


def test_committed_before_its_network_is_in_place_it_starts_then(owner: World) -> None:
    held = placed(owner)
    assert held.remote is not None
    owner.write(lambda tx: guests.commit(tx, ref(held)))
    assert state(owner, held) is JobState.PLANNED
    owner.network(held.remote)
    assert state(owner, held) is JobState.STARTING


def test_a_hold_ends_by_itself_and_gives_its_place_back(owner: World) -> None:
    held = placed(owner)
    owner.now = owner.now.replace(second=int(HOLD_S) - 1)
    assert owner.write(end_holds) == 0
    owner.now = owner.now.replace(second=int(HOLD_S))
    assert owner.write(end_holds) == 1
    assert state(owner, held) is JobState.CANCELLED
    assert owner.write(lambda tx: guests.commit(tx, ref(held))).fate == "released"
    with owner.uow.read() as tx:
        assert due(tx, owner.now) == []  # it is looked at no more
    again = hold(owner)  # the same try may be held once more, as another job
    assert again.fate == "waiting"
    assert again.remote != held.remote
    assert owner.write(lambda tx: guests.commit(tx, ref(held))).fate == "released"  # a late word about the former one


@pytest.mark.parametrize("asks", ["hold", "commit", "status"])
def test_one_that_has_lost_its_place_before_its_home_has_committed_it_is_released(owner: World, asks: str) -> None:
    held = placed(owner)
    assert held.remote is not None
    owner.network(held.remote)
    owner.write(lambda tx: operations.drain(tx, "a"))
    assert state(owner, held) is JobState.QUEUED
    if asks == "hold":
        assert hold(owner).fate == "released"
    elif asks == "commit":
        assert owner.write(lambda tx: guests.commit(tx, ref(held))).fate == "released"
    else:
        with owner.uow.read() as tx:
            asked = RemoteJob(job="job-1", attempt=1, remote=held.remote)
            assert guests.statuses(tx, "r1", [asked])[0][0].fate == "released"
        return  # which only looks: its hold ends by itself
    assert state(owner, held) is JobState.CANCELLED


def test_a_committed_job_does_not_end_with_the_time_of_its_hold(owner: World) -> None:
    held = placed(owner)
    owner.write(lambda tx: guests.commit(tx, ref(held)))
    owner.now = owner.now.replace(minute=30)
    assert owner.write(end_holds) == 0
    assert hold(owner) == FateAnswer(fate="held", remote=held.remote)  # a home that has forgotten gets the same job


def test_one_without_room_is_released_at_once(owner: World) -> None:
    asked = hold(owner)
    assert asked.remote is not None
    reason = Reason(code="capacity", text="no node has 4 cores free")
    refused = PlanRefused(job=asked.remote, attempt=1, version=0, reason=reason)
    owner.write(lambda tx: note_refusal(tx, refused))
    assert hold(owner) == FateAnswer(fate="released", remote=asked.remote, reason="no node has 4 cores free")
    assert state(owner, asked) is JobState.CANCELLED


def test_its_home_ends_it_committed_or_not(owner: World) -> None:
    held = placed(owner)
    owner.write(lambda tx: guests.commit(tx, ref(held)))
    for _ in range(2):
        assert owner.write(lambda tx: guests.release(tx, ref(held))).fate == "released"
    assert state(owner, held) is JobState.CANCELLED


def test_another_region_can_neither_see_commit_nor_end_it(owner: World) -> None:
    held = placed(owner)
    other = ref(held, home="r2")
    assert owner.write(lambda tx: guests.commit(tx, other)).fate == "unknown"
    assert owner.write(lambda tx: guests.release(tx, other)).fate == "unknown"
    with owner.uow.read() as tx:
        [(fate, status)] = guests.statuses(tx, "r2", [RemoteJob(job="job-1", attempt=1, remote=held.remote or "")])
        with pytest.raises(NotFound):
            guests.guest_job(tx, other)
    assert (fate.fate, status) == ("unknown", None)
    assert state(owner, held) is JobState.PLANNED


def test_a_region_asks_about_jobs_of_its_own_only(owner: World) -> None:
    """Not about a job that was submitted here."""
    own = owner.submit(ring(tasks=1))
    with owner.uow.read() as tx, pytest.raises(NotFound):
        guests.guest_job(tx, GuestJobQuery(home="r1", job=own, attempt=1, remote=own))


@pytest.mark.parametrize(
    "file",
    [
        {"tasks": [{"name": "w", "command": ["true"], "secrets": {"key": {"from": "key"}}}]},
        {"flows": {"inputs": [{"node": "a", "dst": "w-0", "bandwidth": {"min": "1Mbit", "max": "2Mbit"}}]}},
        {"duration": 60, "deadline": {"within": "1h"}},
    ],
)
def test_nothing_of_the_regions_own_is_given_to_a_guest(owner: World, file: dict[str, Any]) -> None:
    asked = JobFile.model_validate({"name": "x", "tasks": [{"name": "w", "command": ["true"]}], **file})
    with pytest.raises(Invalid, match="regions: leave it out"):
        hold(owner, asked)
    with owner.uow.read() as tx:
        assert tx.session.query(GuestRow).count() == 0


def test_an_unknown_tenant_is_refused(owner: World) -> None:
    queue = QueueFile.model_validate({"tenants": [{"name": "guests"}]})
    asked = HoldQuery(home="r1", job="job-1", attempt=1, file=FILE)
    with pytest.raises(Invalid, match="no tenant is called"):
        owner.write(lambda tx: guests.hold(tx, asked, queue))
