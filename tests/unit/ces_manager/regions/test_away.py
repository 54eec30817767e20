from __future__ import annotations

from datetime import timedelta

import pytest
from manager_world import START, World, ring
from pydantic import ValidationError

from ces_common.jobfile import JobFile
from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.regions import AwayJob, Decision, NotTaken, RemoteStatus, Reported
from ces_common.states import JobState
from ces_manager.jobs.job_views import job_view
from ces_manager.jobs.transitions import job_row
from ces_manager.measurements import Measurements
from ces_manager.plans.refusal import note_refusal
from ces_manager.regions import away

REMOTE = "01J0000000000000000REMOTE1"


def refuse(world: World, job: str) -> None:
    reason = Reason(code="capacity", text="no room")
    refused = PlanRefused(job=job, attempt=world.job(job).attempt, version=0, reason=reason)
    world.write(lambda tx: note_refusal(tx, refused))


def offered(world: World) -> list[str]:
    with world.uow.read() as tx:
        return [each.job for each in away.offered_jobs(tx)]


def decision(job: str, *, attempt: int = 1, region: str = "r2", remote: str = REMOTE) -> Decision:
    return Decision(job=job, attempt=attempt, region=region, remote=remote)


def decide(world: World, job: str, **more: object) -> str | None:
    return world.write(lambda tx: away.decide(tx, decision(job, **more)))  # type: ignore[arg-type]


def reason(world: World, job: str) -> str | None:
    with world.uow.read() as tx:
        return job_row(tx, job).reason


def open_jobs(world: World) -> list[AwayJob]:
    with world.uow.read() as tx:
        return away.open_jobs(tx)


def report(world: World, job: str, fate: str | None, status: RemoteStatus | None = None, **more: object) -> None:
    about = decision(job, **more).model_dump()  # type: ignore[arg-type]
    told = Reported.model_validate({**about, "fate": fate, "status": status})
    with world.uow.read() as tx:
        news = away.has_news(tx, [told])
    if news:
        world.write(lambda tx: away.take_reports(tx, news))


def gone(world: World) -> str:
    """A job that was decided to run elsewhere."""
    job = world.submit(ring(tasks=2, regions=["r2"]))
    assert decide(world, job) is None
    return job


def wanted(world: World) -> list[str]:
    return [each.wanted for each in open_jobs(world)]


def test_only_what_names_regions_is_offered_and_only_once_there_is_no_room_here(home: World) -> None:
    stays, may_leave = home.submit(ring("stays", 2)), home.submit(ring("leaves", 2, regions=["any"]))
    assert offered(home) == []
    refuse(home, stays)
    refuse(home, may_leave)
    assert offered(home) == [may_leave]
    assert home.commit(home.propose(may_leave, ["a", "b"])) is None  # room came after all
    assert offered(home) == []
    assert decide(home, may_leave) is not None  # too late: it runs here
    assert decide(home, stays) is not None  # its owner did not say so


def test_those_that_nobody_took_just_now_do_not_stand_before_the_others(home: World) -> None:
    jobs = [home.submit(ring(f"job-{i}", 2, regions=["any"])) for i in range(7)]
    for job in jobs:
        refuse(home, job)
    with home.uow.read() as tx:
        first = [each.job for each in away.offered_jobs(tx)]
        then = [each.job for each in away.offered_jobs(tx, skip=first)]
    assert first + then == sorted(jobs)


def test_a_decision_is_made_once_and_for_one_region(home: World) -> None:
    job = gone(home)
    assert home.job(job).state is JobState.ELSEWHERE
    assert decide(home, job) is None  # the same word again
    assert decide(home, job, region="r3") is not None
    assert decide(home, job, remote="01J0000000000000000REMOTE2") is not None
    assert wanted(home) == ["commit"]
    assert home.commit(home.propose(job, ["a", "b"])) is not None  # nor does it run here as well
    with home.uow.read() as tx:
        assert job_view(tx, job, Measurements()).region == "r2"


def test_why_others_took_it_not_is_shown_while_it_waits(home: World) -> None:
    job = home.submit(ring(tasks=2, regions=["r2"]))
    version = home.snapshot().version

    def shown() -> dict[str, str]:
        with home.uow.read() as tx:
            return job_view(tx, job, Measurements()).not_taken

    for attempt in (2, 1):
        said = NotTaken(job=job, attempt=attempt, why={"r2": f"no room at attempt {attempt}"})
        home.write(lambda tx, said=said: away.note_not_taken(tx, said))
    assert shown() == {"r2": "no room at attempt 1"}
    assert home.snapshot().version == version  # no change of the job
    refuse(home, job)
    with home.uow.read() as tx:
        [offer] = away.offered_jobs(tx)
    assert offer.not_taken == shown()
    assert decide(home, job) is None
    assert shown() == {}


def test_it_is_followed_to_its_end(home: World) -> None:
    job = gone(home)
    report(home, job, "committed")
    assert wanted(home) == ["status"]
    home.now = START + timedelta(minutes=5)
    report(home, job, "committed", RemoteStatus(state="running", started_at=START + timedelta(minutes=1)))
    assert home.job(job).state is JobState.ELSEWHERE
    report(home, job, "committed", RemoteStatus(state="succeeded"))
    assert home.job(job).state is JobState.SUCCEEDED
    assert open_jobs(home) == []


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_what_ends_badly_there_has_failed_and_says_where(home: World, state: str) -> None:
    job = gone(home)
    report(home, job, "committed", RemoteStatus(state=state, reason="out of memory"))
    assert home.job(job).state is JobState.FAILED
    with home.uow.read() as tx:
        assert job_view(tx, job, Measurements()).reason == "in region r2: out of memory"


def test_silence_is_told_and_moves_nothing(home: World) -> None:
    job = gone(home)
    report(home, job, "committed")
    version = home.snapshot().version
    home.now += timedelta(days=3)
    report(home, job, None)
    first = home.now - timedelta(seconds=10)
    home.now += timedelta(days=3)
    report(home, job, None)
    with home.uow.read() as tx:
        assert job_view(tx, job, Measurements()).unknown_since == first
    assert home.snapshot().version == version + 1  # only the first silence is written down
    assert home.job(job).state is JobState.ELSEWHERE
    assert offered(home) == []
    report(home, job, "committed", RemoteStatus(state="succeeded"))  # it was done all the while
    with home.uow.read() as tx:
        view = job_view(tx, job, Measurements())
    assert (view.state, view.unknown_since) == (JobState.SUCCEEDED, None)


def test_only_that_regions_word_that_nothing_ran_lets_it_queue_again(home: World) -> None:
    job = gone(home)
    report(home, job, "released")
    record = home.job(job)
    assert (record.state, record.attempt) == (JobState.QUEUED, 2)
    assert open_jobs(home) == []
    report(home, job, "committed", RemoteStatus(state="running"))  # a late word about the former try
    assert home.job(job).state is JobState.QUEUED
    refuse(home, job)
    assert offered(home) == [job]
    assert decide(home, job, attempt=1) is not None
    assert decide(home, job, attempt=2, region="r3") is None


@pytest.mark.parametrize("fate", ["released", "unknown"])
def test_once_committed_no_word_lets_it_run_a_second_time(home: World, fate: str) -> None:
    """A database that has lost its last transactions may say so of what ran."""
    job = gone(home)
    report(home, job, "committed")
    report(home, job, fate)
    assert home.job(job).state is JobState.FAILED
    assert open_jobs(home) == []
    refuse(home, job)
    assert offered(home) == []


def test_a_region_that_has_lost_the_commit_is_told_it_again(home: World) -> None:
    job = gone(home)
    report(home, job, "committed")
    report(home, job, "held")
    assert wanted(home) == ["commit"]
    report(home, job, "committed")
    assert wanted(home) == ["status"]


@pytest.mark.parametrize("fate", ["released", "unknown"])
def test_nor_does_it_run_a_second_time_where_that_region_has_given_it_up_since(home: World, fate: str) -> None:
    """It may have run in what that region's database has lost."""
    job = gone(home)
    for said in ("committed", "held", fate):
        report(home, job, said)
    assert home.job(job).state is JobState.FAILED
    assert open_jobs(home) == []
    refuse(home, job)
    assert offered(home) == []


def test_a_region_that_has_lost_it_is_not_taken_to_have_run_nothing(home: World) -> None:
    job = gone(home)
    report(home, job, "unknown")
    assert home.job(job).state is JobState.FAILED
    assert offered(home) == []


@pytest.mark.parametrize("committed", [False, True])
def test_one_that_is_cancelled_here_is_released_there_until_that_is_answered(home: World, committed: bool) -> None:
    job = gone(home)
    if committed:
        report(home, job, "committed")
    home.cancel(job)
    assert home.job(job).state is JobState.CANCELLED
    assert wanted(home) == ["release"]
    report(home, job, None)
    report(home, job, "committed", RemoteStatus(state="running"))
    assert wanted(home) == ["release"]
    report(home, job, "released")
    assert open_jobs(home) == []
    assert home.job(job).state is JobState.CANCELLED


def test_a_region_speaks_of_what_runs_there_only(home: World) -> None:
    job = gone(home)
    report(home, job, "committed", RemoteStatus(state="succeeded"), region="r3")
    report(home, job, "released", region="r3")
    assert home.job(job).state is JobState.ELSEWHERE


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"regions": ["R2"]}, "pattern"),
        ({"regions": ["r2"] * 17}, "at most 16"),
        ({"regions": ["r2"], "duration": 60, "deadline": {"within": "1h"}}, "the deadline"),
    ],
)
def test_bad_regions_are_refused(more: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        JobFile.model_validate({"name": "x", "tasks": [{"name": "w", "command": ["true"]}], **more})


def test_the_reason_says_how_the_region_was_chosen_where_that_was_told(home: World) -> None:
    by_rule, by_policy = (home.submit(ring(name, tasks=2, regions=["r2"])) for name in ("one", "other"))
    assert decide(home, by_rule) is None
    chosen = decision(by_policy).model_copy(update={"chosen": "by policy region-choice-1 (sha256 0123)"})
    assert home.write(lambda tx: away.decide(tx, chosen)) is None
    assert reason(home, by_rule) == "in region r2"
    assert reason(home, by_policy) == "in region r2, chosen by policy region-choice-1 (sha256 0123)"
