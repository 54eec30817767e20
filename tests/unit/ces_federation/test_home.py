"""A region as a home: whom it asks for a place for its jobs, in which order, and what it keeps of the answers."""

from __future__ import annotations

import pytest
from region_managers import AWAY, OFFERED, Manager, home, owner
from region_worlds import Region
from waiting import until

from ces_common.bus.port import Message, RemoteError
from ces_common.messages.regions import (
    BidAnswer,
    Decision,
    FateAnswer,
    GuestFile,
    GuestJobQuery,
    GuestTriesQuery,
    NotTaken,
    OfferedJobs,
    OffersQuery,
    Refusal,
    ReportedJobs,
    TriesAnswer,
)


async def offered(region: Region) -> None:
    """What waits, and what has become of it."""
    await region.federation.home.offer_all()
    await until(lambda: not region.federation.home._offering)


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
