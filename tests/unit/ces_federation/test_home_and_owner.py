"""A job's way from its home to another region and back, by the services of both; their managers are played here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from memory_bus import MemoryBroker
from region_managers import Manager
from region_policies import write_policy
from region_worlds import Region
from waiting import until

from ces_common.bus.port import Message, RemoteError
from ces_common.jobfile import JobFile
from ces_common.messages.base import Message as Wire
from ces_common.messages.queries import LogAnswer
from ces_common.messages.regions import (
    AwayJob,
    AwayJobs,
    AwayLogQuery,
    AwayQuery,
    BidAnswer,
    ClearedJobs,
    Decision,
    DoubtfulJob,
    FateAnswer,
    FoundPart,
    GuestFile,
    GuestJobQuery,
    GuestStatusQuery,
    GuestTriesQuery,
    HoldQuery,
    NotTaken,
    OfferedJob,
    OfferedJobs,
    OffersQuery,
    PartTry,
    Refusal,
    RemoteJob,
    RemoteStatus,
    ReportedJobs,
    StatusAnswer,
    TriesAnswer,
)
from ces_federation import jobs_away as jobs_away_module
from ces_federation import home as home_module
from ces_federation import owner as owner_module
from ces_federation import wire as wire_module
from ces_federation.asker import LOOKS_AT_ONCE

FILE = JobFile.model_validate(
    {"name": "x", "tenant": "red", "priority": 90, "regions": ["any"], "tasks": [{"name": "w", "command": ["true"]}]}
)
OFFERED = OfferedJob(job="job-1", attempt=1, file=FILE)
TRUST = {"accept": ["red"], "tenants": {"red": "guests", "blue": "guests"}, "max_priority": 40}
REMOTE = "01J0000000000000000REMOTE1"
HELD = FateAnswer(fate="held", remote=REMOTE)
AWAY = {"job": "job-1", "attempt": 1, "remote": REMOTE}


@pytest.fixture
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """By which all regions choose others; None without a parameter: they do so by the rule."""
    by = getattr(request, "param", None)
    return None if by is None else write_policy(tmp_path / "policy.onnx", by)


@pytest.fixture
async def regions(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, policy: Path | None
) -> AsyncIterator[dict[str, Region]]:
    monkeypatch.setattr(wire_module, "SIGN_S", 0.3)
    monkeypatch.setattr(wire_module, "SIGN_EVERY_S", 0.05)
    monkeypatch.setattr(owner_module, "LOOK_S", 0.001)
    made = {name: Region(name, broker, "abc", policy, **TRUST) for name in "abc"}
    for region in made.values():
        await region.start()
    for region in made.values():
        await region.federation.tell()
    await until(lambda: len(made["a"].federation.board.usable(0.0)) == 2)
    yield made
    for region in made.values():
        await region.close()


def away(number: int, wanted: str, region: str = "b") -> AwayJob:
    about = {"job": f"job-{number}", "attempt": 1, "remote": f"{number:026}", "region": region, "wanted": wanted}
    return AwayJob.model_validate(about)


async def owner(region: Region, composite: float = 0.5, *holds: Wire | Exception) -> Manager:
    manager = Manager(region)
    await manager.answers("bid", GuestFile, BidAnswer(feasible=True, composite=composite))
    await manager.answers("hold", HoldQuery, *(holds or (HELD,)))
    await manager.answers("commit", GuestJobQuery, FateAnswer(fate="committed", remote=REMOTE))
    await manager.answers("release", GuestJobQuery, FateAnswer(fate="released"))
    return manager


async def home(region: Region, refusal: str | None = None) -> Manager:
    manager = Manager(region)
    await manager.answers("decide", Decision, Refusal(refusal=refusal))
    await manager.answers("report", ReportedJobs, Refusal())
    return manager


async def offered(region: Region) -> None:
    """What waits, and what has become of it."""
    await region.federation.home.offer_all()
    await until(lambda: not region.federation.home._offering)


async def follow(region: Region, *jobs: AwayJob) -> None:
    """A round with each of their regions."""
    await region.manager_says("region-away", AwayJobs(items=list(jobs)).encode())
    following = region.federation.jobs_away
    await following.follow_all()
    await until(lambda: not len(following.rounds))


async def test_the_best_bid_is_held_decided_and_committed_in_this_order(regions: dict[str, Region]) -> None:
    at_home, worse, better = await home(regions["a"]), await owner(regions["b"], 0.4), await owner(regions["c"], 0.8)
    assert await regions["a"].federation.home.offer(OFFERED) == "placed"
    assert worse.operations() == ["bid"]
    assert better.operations() == ["bid", "hold", "commit"]
    assert at_home.last("decide") == Decision(**AWAY, region="c")
    [reported] = at_home.last("report").items
    assert (reported.region, reported.fate) == ("c", "committed")


@pytest.mark.parametrize("policy", ["nodes"], indirect=True)
async def test_whom_a_policy_prefers_is_held_though_another_bid_is_better(regions: dict[str, Region]) -> None:
    """Of equals the first by name; that it was so is part of the decision."""
    at_home, preferred, better = (
        await home(regions["a"]),
        await owner(regions["b"], 0.4),
        await owner(regions["c"], 0.8),
    )
    assert await regions["a"].federation.home.offer(OFFERED) == "placed"
    assert (preferred.operations(), better.operations()) == (["bid", "hold", "commit"], ["bid"])
    decided = at_home.last("decide")
    assert decided.region == "b"
    assert decided.chosen.startswith("by policy by-hand-1 (sha256 ")


@pytest.mark.parametrize("policy", ["nodes"], indirect=True)
async def test_where_the_preferred_one_has_no_room_the_next_is_held(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    full = Manager(regions["b"])
    await full.answers("bid", GuestFile, BidAnswer(refusal="no room"))
    await owner(regions["c"])
    assert await regions["a"].federation.home.offer(OFFERED) == "placed"
    assert at_home.last("decide").region == "c"


async def test_a_guest_has_the_tenant_the_priority_and_the_home_that_this_region_says(
    regions: dict[str, Region],
) -> None:
    await home(regions["a"])
    there = await owner(regions["b"])
    await regions["a"].federation.home.offer(OFFERED)
    held = there.last("hold")
    assert (held.home, held.file.tenant, held.file.priority, held.file.regions) == ("a", "guests", 40, [])


@pytest.mark.parametrize("tenant", ["blue", "default"])
async def test_a_tenant_that_is_not_accepted_is_refused_by_the_region_itself(
    regions: dict[str, Region], tenant: str
) -> None:
    """Whatever the home takes the summary to say."""
    there = await owner(regions["b"])
    file = FILE.model_copy(update={"tenant": tenant})
    asked = regions["a"].federation
    for operation, question in (("bid", {"file": file}), ("hold", {"job": "j", "attempt": 1, "file": file})):
        model = home_module.Bid if operation == "bid" else home_module.Hold
        raw = await asked.wire.ask("b", operation, model.model_validate(question).encode())
        assert b"not accepted from region a" in raw
    assert there.operations() == []


async def test_where_the_best_cannot_hold_it_the_next_is_asked(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await owner(regions["b"], 0.4)
    await owner(regions["c"], 0.8, FateAnswer(fate="waiting"), FateAnswer(fate="released", reason="no room"))
    assert await regions["a"].federation.home.offer(OFFERED) == "placed"
    assert at_home.last("decide").region == "b"


async def test_silence_in_a_hold_decides_nothing_for_that_region(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    silent = await owner(regions["c"], 0.8, RemoteError("unavailable", "the database does not answer"))
    assert await regions["a"].federation.home.offer(OFFERED) == "not-held"
    assert "decide" not in at_home.operations()
    assert "commit" not in silent.operations()


async def test_without_the_decision_nothing_is_committed(regions: dict[str, Region]) -> None:
    """The job has found room at home meanwhile, or was cancelled."""
    await home(regions["a"], "job x is planned at attempt 1")
    there = await owner(regions["b"])
    assert await regions["a"].federation.home.offer(OFFERED) == "not-decided"
    assert there.operations() == ["bid", "hold", "release"]


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


async def test_a_job_that_cannot_be_decided_holds_up_no_other(regions: dict[str, Region]) -> None:
    """And is not offered again at once."""
    at_home = Manager(regions["a"])
    other = OFFERED.model_copy(update={"job": "job-2"})
    await at_home.answers("offers", OffersQuery, OfferedJobs(items=[OFFERED, other]), OfferedJobs())
    await at_home.answers("decide", Decision, RemoteError("internal", "the database refuses it"), Refusal())
    await at_home.answers("report", ReportedJobs, Refusal())
    await owner(regions["b"])
    await offered(regions["a"])
    assert [said.job for name, said in at_home.asked if name == "decide"] == ["job-1", "job-2"]
    assert at_home.last("report").items[0].fate == "committed"
    await regions["a"].federation.home.offer_all()
    assert at_home.last("offers").skip == ["job-1"]


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

    following = regions["a"].federation.jobs_away
    await following.follow_all()
    await until(lambda: heard() == 1)
    await following.follow_all()
    await until(lambda: heard() == 2)
    assert {each.region for name, said in at_home.asked if name == "report" for each in said.items} == {"c"}
    await following.close()


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


async def test_a_place_that_is_gone_at_the_commit_counts_as_a_refusal(regions: dict[str, Region]) -> None:
    """Lest a region that holds everything and keeps nothing has a job offered to it for ever, each second."""
    at_home, there = await home(regions["a"]), await owner(regions["b"])
    await there.answers("commit", GuestJobQuery, FateAnswer(fate="released"))

    async def offers(message: Message) -> bytes:
        skip = OffersQuery.model_validate_json(message.data).skip
        return OfferedJobs(items=[each for each in (OFFERED,) if each.job not in skip]).encode()

    await regions["a"].manager_says("region-offers", offers)
    tried = []
    for regions["a"].now in (0.0, 0.9, 1.0, 2.9, 3.0):
        await offered(regions["a"])
        tried.append(at_home.operations().count("decide"))
    assert tried == [1, 1, 2, 2, 3]
    assert at_home.last("report").items[0].fate == "released"


async def test_a_silent_region_is_asked_again_only_once_it_is_heard(regions: dict[str, Region]) -> None:
    await home(regions["a"])
    await owner(regions["b"])
    asked: list[bytes] = []

    async def never(_: str, data: bytes) -> bytes:
        asked.append(data)
        return b""

    regions["c"].federation.wire.on("bid", never)
    for _ in range(3):
        assert await regions["a"].federation.home.offer(OFFERED) == "placed"
    assert len(asked) == 1
    before = regions["a"].federation.wire.heard_of("c")
    await regions["c"].federation.tell()
    await until(lambda: regions["a"].federation.wire.heard_of("c") > before)
    await regions["a"].federation.home.offer(OFFERED)
    assert len(asked) == 2


async def test_why_no_region_takes_a_job_is_told_once(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await at_home.answers("not-taken", NotTaken, Refusal())
    for name, why in (("b", "no node has 4 cores free"), ("c", "its tenant may hold no more")):
        await Manager(regions[name]).answers("bid", GuestFile, BidAnswer(refusal=why))
    assert await regions["a"].federation.home.offer(OFFERED) == "no-bid"
    said = at_home.last("not-taken")
    assert said.why == {"b": "no node has 4 cores free", "c": "its tenant may hold no more"}
    await regions["a"].federation.home.offer(OFFERED.model_copy(update={"not_taken": said.why}))
    assert at_home.operations().count("not-taken") == 1
    regions["a"].now = 11.0
    assert await regions["a"].federation.home.offer(OFFERED) == "no-region"
    assert at_home.last("not-taken").why == dict.fromkeys("bc", "it was not heard for more than 10 s")


async def test_what_a_region_held_in_vain_is_let_go_once_it_is_heard(regions: dict[str, Region]) -> None:
    at_home = await home(regions["a"])
    await at_home.answers("offers", OffersQuery, OfferedJobs())
    there = await owner(regions["b"], 0.5, RemoteError("unavailable", "the database does not answer"))
    await there.answers("tries", GuestTriesQuery, TriesAnswer(epoch="e"))
    assert await regions["a"].federation.home.offer(OFFERED) == "not-held"
    await regions["a"].federation.home.offer_all()
    assert "tries" not in there.operations()  # not heard yet
    await regions["b"].federation.tell()
    await until(lambda: not regions["a"].federation.home._asker.silent("b"))
    await regions["a"].federation.home.offer_all()
    await until(lambda: "tries" in there.operations())
    assert (there.last("tries").home, there.last("tries").jobs) == ("a", ["job-1"])
    await until(lambda: not regions["a"].federation.home._left["b"])


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
    following = regions["a"].federation.jobs_away
    for _ in range(2):
        await following.follow_all()
        await until(lambda: not len(following.rounds))
    assert [said.doubted for name, said in at_home.asked if name == "away"] == ["", "job-2"]


async def test_who_follows_logs_holds_up_no_commit(regions: dict[str, Region]) -> None:
    """As many questions for logs as come, all of which take for ever."""
    at_home, there = await home(regions["a"]), await owner(regions["b"])
    looked: list[bytes] = []

    async def forever(_: str, data: bytes) -> bytes:
        looked.append(data)
        await asyncio.Event().wait()
        return b""

    regions["b"].federation.wire.on("logs", forever)
    following = regions["a"].federation.jobs_away
    asked = AwayLogQuery(**AWAY, region="b", task="w-0")
    followers = [asyncio.create_task(following.logs(asked)) for _ in range(200)]
    await until(lambda: len(looked) == LOOKS_AT_ONCE)
    await follow(regions["a"], away(1, "commit"))
    assert at_home.last("report").items[0].fate == "committed"
    assert "commit" in there.operations()
    for each in followers:
        each.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
