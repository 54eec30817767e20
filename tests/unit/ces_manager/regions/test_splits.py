from __future__ import annotations

from datetime import timedelta

import pytest
from manager_world import World, ring

from ces_common.db.region_tables import SplitRow
from ces_common.messages.pieces import Place
from ces_common.messages.regions import SILENT_S, RemoteStatus
from ces_common.messages.split import PartAnswer, PartReport, PartState, PartToAsk, SplitDecision
from ces_common.states import JobState
from ces_manager.jobs import job_views
from ces_manager.measurements import Measurements
from ces_manager.regions import splits

HERE, THERE = f"{1:026}", f"{2:026}"


def place(task: str, region: str, last: int) -> Place:
    return Place.model_validate({"task": task, "region": region, "address": f"10.64.0.{last}", "port": 29400})


PLACES = [place("w-0", "home", 2), place("w-1", "home", 3), place("w-2", "far", 4)]


def decision(job: str, attempt: int = 1) -> SplitDecision:
    about = {"job": job, "attempt": attempt}
    here = PartState(**about, part=0, remote=HERE, region="home", tasks=["w-0", "w-1"])
    there = PartState(**about, part=1, remote=THERE, region="far", tasks=["w-2"], committed=True)  # not believed
    return SplitDecision(job=job, attempt=attempt, parts=[here, there], places=PLACES)


@pytest.fixture
def job(home: World) -> str:
    return home.submit(ring(tasks=3, regions=["any"]))


def decide(world: World, made: SplitDecision) -> str | None:
    return world.write(lambda tx: splits.decide(tx, made))


def asked(world: World) -> list[PartToAsk]:
    with world.uow.read() as tx:
        return splits.to_ask(tx)


def says(world: World, part: int, answer: PartAnswer | None, job: str, attempt: int = 1) -> None:
    remote, region = (HERE, "home") if part == 0 else (THERE, "far")
    report = PartReport(job=job, attempt=attempt, part=part, remote=remote, region=region, answer=answer)
    with world.uow.read() as tx:
        news = splits.has_news(tx, [report])
    if news:
        world.write(lambda tx: splits.take_reports(tx, news))


def ran(state: JobState, *, over: bool = False) -> PartAnswer:
    return PartAnswer(fate="committed", ready=True, started=True, over=over, status=RemoteStatus(state=state))


COMMITTED = PartAnswer(fate="committed", status=RemoteStatus(state=JobState.PLANNED))
READY = COMMITTED.model_copy(update={"ready": True})


def test_a_split_job_is_committed_everywhere_then_started_then_over(home: World, job: str) -> None:
    assert decide(home, decision(job)) is None
    assert decide(home, decision(job)) is None  # an answer was lost
    assert home.job(job).state is JobState.ELSEWHERE
    assert [(each.region, each.word, [p.task for p in each.places]) for each in asked(home)] == [
        ("home", "commit", ["w-2"]),
        ("far", "commit", ["w-0", "w-1"]),
    ]
    says(home, 0, READY, job)
    assert [each.word for each in asked(home)] == ["status", "commit"]
    says(home, 1, COMMITTED, job)
    assert [each.word for each in asked(home)] == ["status", "status"]
    says(home, 1, READY, job)
    assert [each.word for each in asked(home)] == ["start", "start"]
    says(home, 0, ran(JobState.RUNNING), job)
    assert [each.word for each in asked(home)] == ["status", "start"]
    says(home, 1, ran(JobState.SUCCEEDED, over=True), job)
    assert home.job(job).state is JobState.ELSEWHERE
    says(home, 0, ran(JobState.SUCCEEDED, over=True), job)
    assert home.job(job).state is JobState.SUCCEEDED
    assert asked(home) == []


def test_a_part_that_fails_ends_the_job_and_the_other_part(home: World, job: str) -> None:
    decide(home, decision(job))
    for part in (0, 1):
        says(home, part, READY, job)
        says(home, part, ran(JobState.RUNNING), job)
    failed = ran(JobState.FAILED, over=True).model_copy(
        update={"status": RemoteStatus(state=JobState.FAILED, reason="w-2 exited with code 1")}
    )
    says(home, 1, failed, job)
    record = home.job(job)
    assert (record.state, record.reason) == (JobState.FAILED, "its part in region far: w-2 exited with code 1")
    assert [(each.region, each.word) for each in asked(home)] == [("home", "release")]
    says(home, 0, PartAnswer(fate="released", over=True), job)
    assert asked(home) == []


def test_one_that_loses_a_part_before_the_start_is_queued_again_as_its_next_attempt(home: World, job: str) -> None:
    decide(home, decision(job))
    says(home, 0, COMMITTED, job)
    says(home, 1, PartAnswer(fate="released", over=True, reason="held too long"), job)
    assert home.job(job).state is JobState.ELSEWHERE  # not yet: a part of it is held
    assert [(each.region, each.word) for each in asked(home)] == [("home", "release")]
    says(home, 0, PartAnswer(fate="released", over=True), job)
    record = home.job(job)
    assert (record.state, record.attempt) == (JobState.QUEUED, 2)
    assert asked(home) == []
    assert decide(home, decision(job, attempt=2)) is None  # and may be split once more
    assert [each.attempt for each in asked(home)] == [2, 2]
    says(home, 0, COMMITTED, job, attempt=1)  # of the try before, and late
    assert [each.word for each in asked(home)] == ["commit", "commit"]


def test_a_cancelled_one_is_released_everywhere(home: World, job: str) -> None:
    decide(home, decision(job))
    home.cancel(job)
    assert [each.word for each in asked(home)] == ["release", "release"]
    for part in (0, 1):
        says(home, part, PartAnswer(fate="released", over=True), job)
    assert asked(home) == []
    assert home.job(job).state is JobState.CANCELLED


def test_silence_is_told_of_and_moves_nothing(home: World, job: str) -> None:
    decide(home, decision(job))
    home.now += timedelta(hours=3)
    says(home, 1, None, job)
    with home.uow.read() as tx:
        view = job_views.job_view(tx, job, Measurements())
    assert view.unknown_since == home.now - timedelta(seconds=SILENT_S)
    assert view.state is JobState.ELSEWHERE
    assert [(part.region, part.tasks) for part in view.parts] == [("home", ["w-0", "w-1"]), ("far", ["w-2"])]
    says(home, 1, COMMITTED, job)
    with home.uow.read() as tx:
        assert tx.session.get_one(SplitRow, job).unknown_since is None


def test_what_is_no_longer_queued_or_not_whole_is_not_split(home: World, job: str) -> None:
    whole = decision(job)
    less = whole.model_copy(update={"parts": [whole.parts[0], whole.parts[1].model_copy(update={"tasks": ["w-1"]})]})
    assert decide(home, less) == "the parts are not the whole job"
    assert "attempt 1" in str(decide(home, decision(job, attempt=2)))
    stays = home.submit(ring(tasks=3))
    assert decide(home, decision(stays)) == f"no job {stays} may run elsewhere"
    home.cancel(job)
    assert "is cancelled" in str(decide(home, whole))
