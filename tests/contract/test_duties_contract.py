"""What one manager does for all: held by one, taken over from one that died or hangs, left by one that stops. On both
databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World

from ces_common.db import UnitOfWork
from ces_manager.clock import Clock
from ces_manager.database import Database
from ces_manager.duties import PROBE, RELAY, RENEW_S, STANDING, STANDS_STILL_S, TIME, Duties

PATIENCE_S = 60.0


class Desk:
    """Managers on one database, each of which looks when it is told to. Their clock is the world's."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened: list[Database] = []
        self.able = True

    def manager(self, place: str) -> Duties:
        clock = Clock(lambda: self.world.now, lambda: self.world.steady)
        database = Database(UnitOfWork(self.world.uow.engine), clock)
        self.opened.append(database)
        return Duties(database, place, lambda: self.able)

    async def pass_time(self, seconds: float, *alive: Duties) -> None:
        """These look once a second; the others hang."""
        for _ in range(round(seconds / RENEW_S)):
            self.world.wait(RENEW_S)
            for each in alive:
                await each.step()


@pytest.fixture(params=KINDS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    world = World(new_database(request.param, tmp_path))
    desk = Desk(world)
    yield desk
    for database in desk.opened:
        database.close()
    world.close()


def held(duties: Duties) -> set[str]:
    return {name for name in (*STANDING, PROBE) if duties.holds(name)}


async def test_the_first_takes_them_all_at_once_and_the_second_none(desk: Desk) -> None:
    one, two = desk.manager("one:1"), desk.manager("two:1")
    await one.step()
    assert held(one) == STANDING
    for _ in range(10):
        await desk.pass_time(RENEW_S, one, two)
        assert (held(one), held(two)) == (STANDING, set())


async def test_they_are_taken_over_from_one_that_gives_no_sign_and_it_knows(desk: Desk) -> None:
    one, two = desk.manager("one:1"), desk.manager("two:1")
    taken: list[str] = []
    two.on_taken(lambda: taken.append("two"))
    await one.step()
    await two.step()
    await desk.pass_time(STANDS_STILL_S - RENEW_S, two)
    assert (held(two), taken) == (set(), [])
    await desk.pass_time(RENEW_S, two)
    assert (held(two), taken) == (STANDING, ["two"])
    assert held(one) == set(), "it was held up, and has to look first"
    await one.step()
    assert (held(one), held(two)) == (set(), STANDING)
    await desk.pass_time(10, one, two)
    assert (held(one), held(two)) == (set(), STANDING)


async def test_of_several_that_would_take_over_one_does(desk: Desk) -> None:
    one, *others = (desk.manager(f"{number}:1") for number in range(5))
    await one.step()
    for _ in range(5):
        await asyncio.gather(*(each.step() for each in others))
        holders = [held(each) for each in others]
        assert sum(map(len, holders)) <= len(STANDING)
        desk.world.wait(RENEW_S)
    assert set.union(*holders) == STANDING


async def test_one_that_stops_leaves_them_at_once(desk: Desk) -> None:
    one, two = desk.manager("one:1"), desk.manager("two:1")
    await one.step()
    await two.step()
    await one.give_up()
    assert held(one) == set()
    await two.step()
    assert held(two) == STANDING


async def test_one_that_starts_again_in_its_place_takes_its_own_back_at_once(desk: Desk) -> None:
    killed, other = desk.manager("one:1"), desk.manager("two:1")
    await killed.step()
    await other.step()
    again = desk.manager("one:1")
    await again.step()
    assert (held(again), held(other)) == (STANDING, set())


async def test_two_in_one_place_do_not_take_them_from_each_other_in_turn(desk: Desk) -> None:
    """Two machines of one name: the second takes them, as if it were the first come back, and keeps them."""
    first, second = desk.manager("localhost:1"), desk.manager("localhost:1")
    await first.step()
    await second.step()
    for _ in range(10):
        await desk.pass_time(RENEW_S, first, second)
        assert (held(first), held(second)) == (set(), STANDING)


async def test_one_that_cannot_work_leaves_them_to_others(desk: Desk) -> None:
    one = desk.manager("one:1")
    await one.step()
    desk.able = False
    await one.step()
    assert held(one) == set()
    desk.able = True
    two = desk.manager("two:1")
    await two.step()
    assert held(two) == STANDING


async def test_a_turn_waits_for_the_one_of_another_manager(desk: Desk) -> None:
    one, two = desk.manager("one:1"), desk.manager("two:1")
    order: list[str] = []
    begun, go = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with one.turn(PROBE):
            order.append("one begins")
            begun.set()
            await go.wait()
            order.append("one ends")
        await one.step()

    async def second() -> None:
        await begun.wait()
        waiting = asyncio.ensure_future(two.step())
        await waiting
        assert not two.holds(PROBE)
        go.set()
        async with two.turn(PROBE):
            order.append("two begins")
        await two.step()

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as both:
        both.create_task(first())
        both.create_task(second())
    assert order == ["one begins", "one ends", "two begins"]
    assert held(one) | held(two) == STANDING


async def test_a_turn_is_taken_over_from_one_that_died_in_it(desk: Desk) -> None:
    one, two = desk.manager("one:1"), desk.manager("two:1")
    async with asyncio.timeout(PATIENCE_S), one.turn(PROBE):
        await two.step()
        await desk.pass_time(STANDS_STILL_S, two)
        async with two.turn(PROBE):
            assert two.holds(PROBE)
            assert two.holds(TIME)
            assert two.holds(RELAY)
