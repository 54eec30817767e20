"""A database was restored, or taken over by a standby, so that a new epoch began."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from sqlalchemy import update

from ces_common.db.tables import ClusterRow
from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.regions import (
    ClearedJobs,
    Decision,
    FoundPart,
    GuestJobQuery,
    HoldQuery,
    RemoteStatus,
    Reported,
)
from ces_common.messages.split import PartAnswer, PartReport, PartState, SplitDecision
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager.jobs.doubts import doubtful_jobs
from ces_manager.jobs.job_views import job_view
from ces_manager.jobs.transitions import job_row
from ces_manager.measurements import Measurements
from ces_manager.plans.refusal import note_refusal
from ces_manager.regions import away, guests, restoration, splits
from ces_manager.regions.held import next_end

FILE = ring(tasks=2, regions=["any"])
REMOTE = "01J0000000000000000REMOTE1"


def restore(world: World, epoch: str = "another") -> None:
    with world.uow.engine.begin() as connection:
        connection.execute(update(ClusterRow).values(epoch=epoch))


def waits(world: World, **more: object) -> str:
    job = world.submit(ring(tasks=2, **({"regions": ["any"]} | more)))
    refused = PlanRefused(job=job, attempt=1, version=0, reason=Reason(code="capacity", text="no room"))
    world.write(lambda tx: note_refusal(tx, refused))
    return job


def offered(world: World) -> list[str]:
    with world.uow.read() as tx:
        return [each.job for each in away.offered_jobs(tx)]


def doubtful(world: World) -> list[str]:
    with world.uow.read() as tx:
        return [each.job for each in doubtful_jobs(tx)]


def run_of(job: str, attempt: int = 1, region: str = "r2", epoch: str = "e2") -> Decision:
    return Decision(job=job, attempt=attempt, region=region, remote=REMOTE, epoch=epoch)


def decide(world: World, decision: Decision) -> str | None:
    return world.write(lambda tx: away.decide(tx, decision))


def clear(world: World, *jobs: str, found: list[Decision] | None = None) -> None:
    world.write(lambda tx: restoration.clear(tx, ClearedJobs(jobs=list(jobs), found=found or [])))


def report(world: World, run: Decision, fate: str | None, epoch: str = "e2", state: str | None = None) -> None:
    about = {"job": run.job, "attempt": run.attempt, "remote": run.remote, "region": run.region, "epoch": epoch}
    status = None if state is None else RemoteStatus(state=state)
    said = Reported.model_validate({**about, "fate": fate, "status": status})
    with world.uow.read() as tx:
        news = away.has_news(tx, [said])
    if news:
        world.write(lambda tx: away.take_reports(tx, news))


# the database of the home


def test_a_job_that_may_have_left_is_placed_nowhere_before_the_others_were_asked(home: World) -> None:
    job, stays = waits(home), waits(home, regions=[])
    restore(home)
    assert doubtful(home) == [job]
    assert offered(home) == []
    why = decide(home, run_of(job))
    assert why is not None
    assert "asked first whether they have job" in why
    assert "this database was restored" in (home.commit(home.propose(job, ["a", "b"])) or "")
    assert home.commit(home.propose(stays, ["a", "b"])) is None
    with home.uow.read() as tx:
        assert "restored" in (job_view(tx, job, Measurements()).remark or "")
    clear(home, job)
    assert doubtful(home) == []
    assert offered(home) == [job]
    assert home.commit(home.propose(job, ["a", "b"])) is None


def test_every_doubtful_job_has_its_turn_though_nobody_answers_about_the_first(home: World) -> None:
    a, b, c, d, e = sorted(waits(home) for _ in range(5))
    restore(home)
    told, last = [], ""
    for _ in range(5):
        with home.uow.read() as tx:
            told.append([each.job for each in doubtful_jobs(tx, last, most=2)])
        last = told[-1][-1]
    assert told == [[a, b], [c, d], [e, a], [b, c], [d, e]]
    with home.uow.read() as tx:
        assert [each.job for each in doubtful_jobs(tx, e)] == [a, b, c, d, e]


def test_one_that_others_run_is_taken_over(home: World) -> None:
    job = waits(home)
    restore(home)
    clear(home, found=[run_of(job), run_of(job, 3, "r3")])
    record = home.job(job)
    assert (record.state, record.attempt) == (JobState.ELSEWHERE, 3)
    assert doubtful(home) == []
    with home.uow.read() as tx:
        [open_job] = away.open_jobs(tx)
    assert (open_job.region, open_job.attempt, open_job.wanted) == ("r3", 3, "status")
    report(home, run_of(job, 3, "r3"), "committed", state="succeeded")
    assert home.job(job).state is JobState.SUCCEEDED


def test_one_that_is_known_to_be_elsewhere_follows_its_last_try(home: World) -> None:
    job, same = waits(home), waits(home)
    assert decide(home, run_of(job)) is None
    assert decide(home, run_of(same)) is None
    restore(home)
    assert doubtful(home) == sorted((job, same))
    clear(home, job, same, found=[run_of(job), run_of(job, 2, "r3"), run_of(same)])
    with home.uow.read() as tx:
        found = {each.job: (each.region, each.attempt, each.wanted) for each in away.open_jobs(tx)}
    assert found == {job: ("r3", 2, "status"), same: ("r2", 1, "status")}


def test_one_that_was_put_back_to_a_place_here_is_ended_in_both(home: World) -> None:
    job = waits(home)
    home.run(job, ["a", "b"])
    restore(home)
    clear(home, job, found=[run_of(job, 2)])
    assert home.job(job).state is JobState.CANCELLED
    with home.uow.read() as tx:
        [told] = away.open_jobs(tx)
    assert (told.region, told.attempt, told.wanted) == ("r2", 2, "release")
    home.tell(job, "exited", exit_code=0)


def test_a_late_answer_about_another_epoch_clears_nothing_twice(home: World) -> None:
    job = waits(home)
    clear(home, found=[run_of(job)])  # nobody is in doubt
    assert home.job(job).state is JobState.QUEUED
    clear(home, "unknown-job", found=[run_of("no-such-job")])


# the database of the region that has it


def test_released_by_a_restored_database_does_not_mean_that_nothing_ran(home: World) -> None:
    first, second = waits(home), waits(home)
    for job in (first, second):
        assert decide(home, run_of(job)) is None
    report(home, run_of(first), "released")
    report(home, run_of(second), "released", epoch="restored")
    assert home.job(first).state is JobState.QUEUED
    assert home.job(second).state is JobState.FAILED


def test_a_restored_region_is_told_that_a_job_is_over(home: World) -> None:
    """It may run it again otherwise."""
    job = waits(home)
    assert decide(home, run_of(job)) is None
    report(home, run_of(job), "committed", state="succeeded")

    def told(epoch: str) -> list[str]:
        with home.uow.read() as tx:
            return [each.wanted for each in away.open_jobs(tx, {"r2": epoch, "r3": "x"})]

    assert told("e2") == []
    assert told("restored") == ["release"]
    report(home, run_of(job), None)
    report(home, run_of(job), "committed", epoch="restored", state="running")
    assert told("restored") == ["release"]
    report(home, run_of(job), "released", epoch="restored")
    assert told("restored") == []
    assert home.job(job).state is JobState.SUCCEEDED


def test_a_home_that_has_lost_what_it_knew_hears_what_was_committed_and_frees_the_rest(owner: World) -> None:
    made = []
    for job in ("job-1", "job-2"):
        asked = HoldQuery(home="r1", job=job, attempt=1, file=FILE)
        remote = owner.write(lambda tx, asked=asked: guests.hold(tx, asked, QueueFile())).remote
        assert remote is not None
        assert owner.commit(owner.propose(remote, ["a", "b"])) is None
        made.append(GuestJobQuery(home="r1", job=job, attempt=1, remote=remote))
    committed, held = made
    owner.write(lambda tx: guests.commit(tx, committed))
    found = owner.write(lambda tx: guests.tries(tx, "r1", ["job-1", "job-2", "job-3"]))
    assert [(each.job, each.remote) for each in found] == [("job-1", committed.remote)]
    assert owner.job(held.remote).state is JobState.CANCELLED
    assert owner.write(lambda tx: guests.commit(tx, held)).fate == "released"  # a word that was under way
    assert owner.write(lambda tx: guests.tries(tx, "r9", ["job-1", "job-2"])) == []


@pytest.mark.parametrize("committed", [False, True])
def test_when_the_first_hold_ends_is_known(owner: World, committed: bool) -> None:
    with owner.uow.read() as tx:
        assert next_end(tx) is None
    asked = HoldQuery(home="r1", job="job-1", attempt=1, file=FILE)
    remote = owner.write(lambda tx: guests.hold(tx, asked, QueueFile())).remote
    assert remote is not None
    assert owner.commit(owner.propose(remote, ["a", "b"])) is None
    if committed:
        query = GuestJobQuery(home="r1", job="job-1", attempt=1, remote=remote)
        owner.write(lambda tx: guests.commit(tx, query))
    with owner.uow.read() as tx:
        end = next_end(tx)
    assert (end is None) is committed


# jobs that were split


def part(job: str, region: str = "r2", attempt: int = 1, number: int = 1) -> FoundPart:
    return FoundPart(job=job, attempt=attempt, part=number, remote=REMOTE, region=region)


def clear_parts(world: World, *found: FoundPart, jobs: list[str] | None = None) -> None:
    world.write(lambda tx: restoration.clear(tx, ClearedJobs(jobs=jobs or [], parts=list(found))))


def words(world: World) -> list[tuple[str, str, str]]:
    with world.uow.read() as tx:
        return [(each.region, each.remote, each.word) for each in splits.to_ask(tx)]


def split(world: World, job: str) -> None:
    about = {"job": job, "attempt": 1, "tasks": ["w-0"]}
    here = PartState.model_validate({**about, "part": 0, "remote": f"{7:026}", "region": "r1"})
    there = PartState.model_validate({**about, "part": 1, "remote": REMOTE, "region": "r2", "tasks": ["w-1"]})
    made = SplitDecision(job=job, attempt=1, parts=[here, there], places=[])
    assert world.write(lambda tx: splits.decide(tx, made)) is None


def test_a_job_whose_split_is_forgotten_fails_and_its_parts_are_ended(home: World) -> None:
    """Waiting at home, or with a place there: it may have run."""
    waiting, placed = waits(home), waits(home)
    home.run(placed, ["a", "b"])
    restore(home)
    clear_parts(home, part(waiting), part(placed, "r3"))
    for job, region in ((waiting, "r2"), (placed, "r3")):
        assert home.job(job).state is JobState.FAILED
        with home.uow.read() as tx:
            assert f"split over regions, {region} among them" in str(job_row(tx, job).reason)
    assert sorted(words(home)) == [("r2", REMOTE, "release"), ("r3", REMOTE, "release")]
    told = PartReport(**part(waiting).model_dump(), answer=PartAnswer(fate="released", over=True))
    home.write(lambda tx: splits.take_reports(tx, [told]))
    assert words(home) == [("r3", REMOTE, "release")]
    home.confirm(placed)


def test_a_split_that_is_known_goes_on(home: World) -> None:
    job = waits(home)
    split(home, job)
    restore(home)
    clear_parts(home, part(job), part(job, "r3", attempt=0), jobs=[job])  # an earlier try has ended
    assert home.job(job).state is JobState.ELSEWHERE
    assert doubtful(home) == []
    assert [word for _, _, word in words(home)] == ["commit", "commit"]


def test_parts_of_another_try_are_ended_beside_those_that_are_known(home: World) -> None:
    job = waits(home)
    split(home, job)
    restore(home)
    clear_parts(home, part(job, "r3", attempt=2), jobs=[job])
    assert home.job(job).state is JobState.FAILED
    assert sorted(words(home)) == [
        ("r1", f"{7:026}", "release"),
        ("r2", REMOTE, "release"),
        ("r3", REMOTE, "release"),
    ]


def test_a_late_answer_about_parts_ends_nothing(home: World) -> None:
    job = waits(home)
    split(home, job)
    clear_parts(home, part(job, "r3", attempt=2))  # nobody is in doubt
    assert home.job(job).state is JobState.ELSEWHERE
