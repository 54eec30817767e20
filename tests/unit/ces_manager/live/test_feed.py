from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from sqlalchemy.exc import OperationalError

from ces_manager.live.feed import KEPT, LINGER, Frame, LiveFeed
from ces_manager.live.picture import Picture

PATIENCE_S = 30.0


class World:
    """Each look shows a number that is one higher, and how many looks there were; ``down``: there is no database."""

    def __init__(self) -> None:
        self.looks, self.down, self.next = 0, False, asyncio.Event()
        self.next.set()

    async def look(self) -> Picture:
        await self.next.wait()
        self.looks += 1
        if self.down:
            raise OperationalError("select", {}, Exception("gone"))
        jobs = {f"{tenant}-job": {"tenant": tenant, "n": self.looks} for tenant in ("red", "blue")}
        return Picture(self.looks, 0, "now", {"n1": {"used": self.looks}}, {}, {}, jobs, {}, {})


@pytest.fixture
def world() -> World:
    return World()


async def got(frames: AsyncGenerator[Frame | None], count: int) -> list[Frame]:
    found: list[Frame] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            frame = await anext(frames)
            if frame is not None:
                found.append(frame)
    return found


async def test_the_whole_first_then_changes_with_rising_numbers(world: World) -> None:
    frames = LiveFeed(world.look, every_s=0.001).follow(None)
    first, *rest = await got(frames, 4)
    await frames.aclose()
    assert first.kind == "keyframe"
    assert [frame.kind for frame in rest] == ["change"] * 3
    assert [frame.number - first.number for frame in rest] == [1, 2, 3]
    used = json.loads(first.data)["nodes"]["n1"]["used"]
    assert [json.loads(frame.data)["nodes"]["n1"]["used"] - used for frame in rest] == [1, 2, 3]


async def test_all_who_may_see_the_same_get_the_same_text(world: World) -> None:
    feed = LiveFeed(world.look, every_s=0.01)
    streams = [feed.follow(frozenset({"red"})) for _ in range(5)]
    found = await asyncio.gather(*(got(stream, 3) for stream in streams))
    for stream in streams:
        await stream.aclose()
    by_number = {frame.number: frame.data for frames in found for frame in frames if frame.kind == "change"}
    assert all(frame.data is by_number[frame.number] for frames in found for frame in frames if frame.kind == "change")
    assert "blue" not in "".join(by_number.values())


async def test_looks_end_a_while_after_the_last_follower_has_left(world: World) -> None:
    feed = LiveFeed(world.look, every_s=0.001)
    frames = feed.follow(None)
    await got(frames, 2)
    await frames.aclose()
    looking = feed._looking
    assert looking is not None
    looks = world.looks
    async with asyncio.timeout(PATIENCE_S):
        await looking
    assert LINGER <= world.looks - looks <= LINGER + 2
    again = feed.follow(None)
    assert (await got(again, 1))[0].kind == "keyframe"
    await again.aclose()


async def test_coming_and_going_makes_no_look_of_its_own_and_one_alone_resumes(world: World) -> None:
    feed = LiveFeed(world.look, every_s=0.02)
    frames = feed.follow(None)
    (last,) = await got(frames, 1)
    await frames.aclose()
    for _ in range(LINGER // 3):
        looks = world.looks
        stream = feed.follow(None, feed.id_of(last))
        first = await anext(stream)
        last = first or last
        assert first is None or first.kind == "change"
        await stream.aclose()
        assert world.looks == looks
        await asyncio.sleep(0.02)


async def test_a_look_that_fails_is_followed_by_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = LiveFeed(world.look, every_s=0.001)
    frames = feed.follow(None)
    await got(frames, 1)
    calls = 0

    async def failing() -> Picture:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise IndexError("of nobody's making")
        return await world.look()

    monkeypatch.setattr(feed, "_look", failing)
    await got(frames, 2)
    assert calls >= 3
    await frames.aclose()


async def test_a_stream_goes_on_after_the_last_frame_that_was_seen(world: World) -> None:
    feed = LiveFeed(world.look, every_s=0.01)
    keeper = feed.follow(None)
    first = (await got(keeper, 1))[0]
    await got(keeper, 3)
    resumed = feed.follow(None, feed.id_of(first))
    frames = await got(resumed, 3)
    assert [frame.kind for frame in frames] == ["change"] * 3
    assert [frame.number - first.number for frame in frames] == [1, 2, 3]
    for stream in (keeper, resumed):
        await stream.aclose()


@pytest.mark.parametrize("last", ["another.1", "nonsense", "", "{name}.x", "{name}.99999999", "{name}.0"])
async def test_whoever_names_no_frame_that_is_kept_gets_the_whole(world: World, last: str) -> None:
    feed = LiveFeed(world.look, every_s=0.001)
    keeper = feed.follow(None)
    await got(keeper, KEPT + 5)
    other = feed.follow(None, last.format(name=feed.name))
    assert (await got(other, 1))[0].kind == "keyframe"
    for stream in (keeper, other):
        await stream.aclose()


async def test_a_slow_one_gets_the_whole_anew(world: World) -> None:
    feed = LiveFeed(world.look, every_s=0.001)
    slow, keeper = feed.follow(None), feed.follow(None)
    await got(slow, 1)
    await got(keeper, 2 * KEPT)
    assert (await got(slow, 1))[0].kind == "keyframe"
    for stream in (keeper, slow):
        await stream.aclose()


async def test_while_the_database_is_away_followers_are_asked_whether_to_go_on(world: World) -> None:
    feed = LiveFeed(world.look, every_s=0.01)
    frames = feed.follow(None)
    await got(frames, 1)
    world.down = True
    async with asyncio.timeout(PATIENCE_S):
        while await anext(frames) is not None:
            pass
    world.down = False
    assert (await got(frames, 1))[0].kind == "change"
    await frames.aclose()


async def test_a_wake_is_a_look_at_whether_to_end(world: World) -> None:
    feed = LiveFeed(world.look, every_s=3600.0)
    frames = feed.follow(None)
    await got(frames, 1)
    asking = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    feed.wake()
    async with asyncio.timeout(PATIENCE_S):
        assert await asking is None
    await frames.aclose()
