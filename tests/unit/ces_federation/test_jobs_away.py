"""Jobs that run in other regions: what is said to these, what they say, and what people read of the jobs."""

from __future__ import annotations

import asyncio
from typing import Any

from region_managers import AWAY, REMOTE, Manager, home, owner
from region_worlds import Region
from waiting import until

from ces_common.bus.port import Message, RemoteError
from ces_common.messages.agent_queries import LogAnswer
from ces_common.messages.regions import (
    AwayJob,
    AwayJobs,
    AwayLogQuery,
    AwayQuery,
    ClearedJobs,
    Decision,
    DoubtfulJob,
    FateAnswer,
    FoundPart,
    GuestJobQuery,
    GuestStatusQuery,
    GuestTriesQuery,
    PartTry,
    Refusal,
    RemoteJob,
    RemoteStatus,
    ReportedJobs,
    StatusAnswer,
    TriesAnswer,
)
from ces_federation import jobs_away as jobs_away_module
from ces_federation import owner as owner_module
from ces_federation import wire as wire_module
from ces_federation.asker import LOOKS_AT_ONCE


def away(number: int, wanted: str, region: str = "b") -> AwayJob:
    about = {"job": f"job-{number}", "attempt": 1, "remote": f"{number:026}", "region": region, "wanted": wanted}
    return AwayJob.model_validate(about)


async def follow(region: Region, *jobs: AwayJob) -> None:
    """A round with each of their regions."""
    await region.manager_says("region-away", AwayJobs(items=list(jobs)).encode())
    jobs_away = region.federation.jobs_away
    await jobs_away.follow_all()
    await until(lambda: not len(jobs_away.rounds))


async def test_after_a_restart_the_commit_is_said_until_it_is_answered(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await Manager(regions["b"]).answers("commit", GuestJobQuery, RemoteError("unavailable", "the database is away"))
    decided = AwayJob(**AWAY, region="b", wanted="commit")
    await follow(regions["a"], decided)
    assert at_home.asked == []  # nothing to tell yet
    await owner(regions["b"])
    regions["a"].now = 60.0
    await follow(regions["a"], decided)
    assert at_home.last("report").items[0].fate == "committed"


async def test_a_region_that_does_not_answer_is_told_of_after_a_while_and_its_jobs_stay(
    regions: dict[str, Region],
) -> None:
    at_home = await home(regions["a"])
    jobs = [away(i, "status") for i in range(2)]
    await follow(regions["a"], *jobs)
    assert at_home.asked == []
    regions["a"].now = 10.0
    await follow(regions["a"], *jobs)
    assert [(each.job, each.fate) for each in at_home.last("report").items] == [("job-0", None), ("job-1", None)]
    answer = StatusAnswer(
        items=[FateAnswer(fate="committed"), FateAnswer(fate="released")],
        statuses=[RemoteStatus(state="running"), None],
    )
    there = Manager(regions["b"])
    await there.answers("status", GuestStatusQuery, answer)
    await follow(regions["a"], *jobs)
    first, second = at_home.last("report").items
    assert (first.fate, first.status.state, second.fate) == ("committed", "running", "released")
    assert there.last("status").home == "a"


async def test_an_answer_that_does_not_fit_its_question_says_nothing(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await Manager(regions["b"]).answers("status", GuestStatusQuery, StatusAnswer(items=[FateAnswer(fate="released")]))
    regions["a"].now = 60.0
    await follow(regions["a"], AwayJob(**AWAY, region="b", wanted="status"))
    # it has answered, though with nothing that can be used: neither a fate, nor silence
    assert all(each.fate is None for _, said in at_home.asked for each in said.items)


async def test_logs_are_read_where_the_job_runs(regions: dict[str, Region]) -> None:
    there = Manager(regions["b"])
    await there.answers("logs", owner_module.GuestLogQuery, LogAnswer(found=True, text="hello\n", offset=6))
    asked = AwayLogQuery(**AWAY, region="b", task="w-0", offset=3)
    answer = await regions["a"].federation.jobs_away.logs(asked)
    assert answer is not None
    assert answer.text == "hello\n"
    assert (there.last("logs").home, there.last("logs").offset) == ("a", 3)
    assert await regions["a"].federation.jobs_away.logs(asked.model_copy(update={"region": "c"})) is None


async def test_a_report_that_is_refused_spoils_no_other_regions(regions: dict[str, Region]) -> None:
    at_home = Manager(regions["a"])

    async def report(message: Message) -> bytes:
        said = ReportedJobs.model_validate_json(message.data)
        at_home.asked.append(("report", said))
        if any(each.region == "b" for each in said.items):
            raise RemoteError("internal", "the database refuses it")
        return Refusal().encode()

    await regions["a"].manager_says("region-report", report)
    for name in "bc":
        await owner(regions[name])
    await follow(regions["a"], away(1, "commit"), away(2, "commit", "c"))
    assert sorted(each.region for _, said in at_home.asked for each in said.items) == ["b", "c"]
    assert all(len(said.items) == 1 for _, said in at_home.asked)


async def test_a_region_that_is_frozen_delays_no_other(regions: dict[str, Region], monkeypatch: Any) -> None:
    """Rounds go on for the one that answers, while the other has not answered in the first."""
    monkeypatch.setattr(wire_module, "SIGN_S", 60.0)
    monkeypatch.setattr(jobs_away_module, "WORD_S", 60.0)
    at_home = await home(regions["a"])
    await regions["a"].manager_says("region-away", AwayJobs(items=[away(1, "commit"), away(2, "commit", "c")]).encode())
    await owner(regions["c"])

    def heard() -> int:
        return at_home.operations().count("report")

    jobs_away = regions["a"].federation.jobs_away
    await jobs_away.follow_all()
    await until(lambda: heard() == 1)
    await jobs_away.follow_all()
    await until(lambda: heard() == 2)
    assert {each.region for name, said in at_home.asked if name == "report" for each in said.items} == {"c"}
    await jobs_away.close()


async def test_a_job_whose_commit_fails_there_holds_up_no_other_of_that_region(regions: dict[str, Region]) -> None:
    at_home, there = await home(regions["a"]), Manager(regions["b"])

    async def commit(message: Message) -> bytes:
        asked = GuestJobQuery.model_validate_json(message.data)
        if asked.job == "job-1":
            raise RemoteError("internal", "the database refuses it")
        return FateAnswer(fate="committed", remote=asked.remote).encode()

    await regions["b"].manager_says("region-commit", commit)
    answer = StatusAnswer(items=[FateAnswer(fate="committed")], statuses=[RemoteStatus(state="running")])
    await there.answers("status", GuestStatusQuery, answer)
    await follow(regions["a"], away(1, "commit"), away(2, "commit"), away(3, "status"))
    assert [each.job for each in at_home.last("report").items] == ["job-2", "job-3"]


async def test_doubtful_jobs_are_cleared_by_words_and_not_by_silence(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await at_home.answers("cleared", ClearedJobs, Refusal())
    run = RemoteJob(job="job-2", attempt=3, remote=REMOTE)
    there = Manager(regions["b"])
    foreign = RemoteJob(job="job-9", attempt=1, remote=REMOTE)
    piece = PartTry(job="job-1", attempt=2, part=1, remote=REMOTE)
    others = piece.model_copy(update={"job": "job-9"})
    told = TriesAnswer(epoch="e2", items=[run, foreign], parts=[piece, others])
    await there.answers("tries", GuestTriesQuery, told)
    jobs = [
        DoubtfulJob(job="job-1", regions=["b"]),
        DoubtfulJob(job="job-2", regions=["any"]),
        DoubtfulJob(job="job-3", regions=["c"]),
        DoubtfulJob(job="job-4", regions=["gone"]),  # trusted no more
    ]
    await regions["a"].federation.jobs_away.clear(jobs)
    assert there.last("tries").jobs == ["job-1", "job-2"]
    said = at_home.last("cleared")
    assert said.jobs == ["job-1", "job-4"]
    assert said.found == [Decision(**run.model_dump(), region="b", epoch="e2")]
    assert said.parts == [FoundPart(**piece.model_dump(), region="b")]


async def test_the_next_look_at_doubtful_jobs_begins_behind_the_last(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await at_home.answers("cleared", ClearedJobs, Refusal())
    doubtful = [DoubtfulJob(job=f"job-{number}", regions=["b"]) for number in (1, 2)]
    await at_home.answers("away", AwayQuery, AwayJobs(doubtful=doubtful))
    jobs_away = regions["a"].federation.jobs_away
    for _ in range(2):
        await jobs_away.follow_all()
        await until(lambda: not len(jobs_away.rounds))
    assert [said.doubted for name, said in at_home.asked if name == "away"] == ["", "job-2"]


async def test_who_follows_logs_holds_up_no_commit(regions: dict[str, Region]) -> None:
    """The other region is asked for logs over and over, and never answers."""
    at_home, there = await home(regions["a"]), await owner(regions["b"])
    looked: list[bytes] = []

    async def forever(_: str, data: bytes) -> bytes:
        looked.append(data)
        await asyncio.Event().wait()
        return b""

    regions["b"].federation.wire.on("logs", forever)
    jobs_away = regions["a"].federation.jobs_away
    asked = AwayLogQuery(**AWAY, region="b", task="w-0")
    followers = [asyncio.create_task(jobs_away.logs(asked)) for _ in range(200)]
    await until(lambda: len(looked) == LOOKS_AT_ONCE)
    await follow(regions["a"], away(1, "commit"))
    assert at_home.last("report").items[0].fate == "committed"
    assert "commit" in there.operations()
    for each in followers:
        each.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
