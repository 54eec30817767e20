"""How CPU is shared among workers of running jobs: no node is overdrawn, all keep their least, shares are fair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ces_scheduler.cpu_levels import LEAST_CHANGE, NODE, STEP, Place, Sharer, given_up, levels, next_change

NAMES = ["a", "b", "c"]


def sharer(name: str, on: str, level: int = 100, least: int = 100, most: int = 4000, priority: int = 50) -> Sharer:
    """One worker on each node named, which may be named more often."""
    return Sharer(name, priority, level, least, most, {(NODE, each): on.count(each) for each in on})


def nodes(**cpu: int) -> dict[Place, float]:
    return {(NODE, name): amount for name, amount in cpu.items()}


def used(sharers: list[Sharer], found: Mapping[str, int]) -> dict[Place, int]:
    total = {(NODE, name): 0 for name in NAMES}
    for each in sharers:
        for place, count in each.workers.items():
            total[place] += found[each.name] * count
    return total


def test_a_job_alone_has_its_most_or_all_that_there_is() -> None:
    assert levels([sharer("j", "ab", most=700)], nodes(a=1000, b=2000)) == {"j": 700}
    assert levels([sharer("j", "ab")], nodes(a=1000, b=2000)) == {"j": 1000}
    assert levels([sharer("j", "aab")], nodes(a=1000, b=2000)) == {"j": 500}, "its workers have the same"


def test_shares_are_max_min_fair() -> None:
    """As rates of flows on links: one shares a with each of two others, of which one cannot use its half."""
    jobs = [sharer("wide", "ab"), sharer("small", "a", most=300), sharer("narrow", "b")]
    assert levels(jobs, nodes(a=1000, b=2000)) == {"wide": 700, "small": 300, "narrow": 1300}


def test_the_more_urgent_rises_first() -> None:
    jobs = [sharer("low", "a"), sharer("high", "a", most=800, priority=90)]
    assert levels(jobs, nodes(a=1000)) == {"low": 200, "high": 800}


amounts = st.integers(1, 40).map(lambda count: count * STEP)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Sharer], dict[Place, float]]:
    """Jobs that have their least, or more, on nodes with room for that and some more."""
    jobs = []
    for i in range(draw(st.integers(1, 5))):
        least, level, most = sorted(draw(st.tuples(amounts, amounts, amounts)))
        on = draw(st.text(alphabet=NAMES, min_size=1, max_size=4))
        jobs.append(sharer(f"j{i}", on, level, least, most, draw(st.sampled_from([10, 50]))))
    held = used(jobs, {each.name: each.level for each in jobs})
    return jobs, {place: amount + draw(st.integers(0, 2000)) for place, amount in held.items()}


@given(scenes())
@settings(max_examples=200, deadline=None)
def test_no_place_is_overdrawn_all_have_their_least_and_nobody_could_have_more(
    scene: tuple[list[Sharer], dict[Place, float]],
) -> None:
    jobs, capacity = scene
    found = levels(jobs, capacity)
    total = used(jobs, found)
    assert all(total[place] <= capacity[place] for place in total)
    for each in jobs:
        assert each.least <= found[each.name] <= each.most
        if found[each.name] + STEP > each.most:
            continue
        lower = [other for other in jobs if other.priority < each.priority]
        taken, least = used(lower, found), used(lower, {other.name: other.least for other in lower})
        full = [
            place
            for place, count in each.workers.items()
            if total[place] - taken[place] + least[place] + STEP * count > capacity[place]
        ]
        assert full, f"{each.name} could have more, but for less urgent ones"


@given(scenes())
@settings(max_examples=200, deadline=None)
def test_changes_come_to_an_end_and_overdraw_no_place_on_the_way(
    scene: tuple[list[Sharer], dict[Place, float]],
) -> None:
    """What is given up is free before anybody has it; every job comes close to its level, and stays there."""
    jobs, capacity = scene
    seen = 0
    while True:
        held = used(jobs, {each.name: each.level for each in jobs})
        assert all(held[place] <= capacity[place] for place in held)
        free = {place: capacity[place] - held[place] for place in held}
        change = next_change(jobs, capacity, free, [each.name for each in jobs])
        if change is None:
            break
        name, cpu = change
        before = next(each for each in jobs if each.name == name)
        assert abs(cpu - before.level) >= LEAST_CHANGE * before.level
        jobs = [replace(each, level=cpu) if each.name == name else each for each in jobs]
        seen += 1
        assert seen <= 4 * len(jobs), "jobs take from each other for ever"


def test_what_others_are_to_have_is_given_up_first() -> None:
    jobs = [sharer("old", "a", level=2000), sharer("new", "a", level=500)]
    capacity, free = nodes(a=2500), nodes(a=0)
    assert next_change(jobs, capacity, free, ["new"]) == ("old", 1250)
    assert next_change(jobs, capacity, free, []) is None, "nobody would have it"
    smaller = [replace(jobs[0], level=1250), jobs[1]]
    assert next_change(smaller, capacity, nodes(a=300), ["new"]) == ("new", 800), "as far as it is free already"
    assert next_change(smaller, capacity, nodes(a=750), ["new"]) == ("new", 1250)
    assert next_change(smaller, capacity, nodes(a=40), ["new"]) is None, "not worth a change"


def test_for_another_the_least_urgent_gives_up_by_as_much_as_it_takes() -> None:
    jobs = [
        sharer("urgent", "a", level=900, priority=90),
        sharer("one", "aab", level=600),
        sharer("two", "a", level=500),
        sharer("elsewhere", "b", level=2000),
    ]
    assert given_up(jobs, nodes(a=301)) == ("one", 400), "two of its workers give up a hundred and a half each"
    assert given_up(jobs, nodes(a=5000)) == ("one", 100)
    assert given_up(jobs[:1], nodes(a=100, b=-50)) == ("urgent", 800)
    assert given_up(jobs, nodes(c=100)) is None
    assert given_up([sharer("none", "a")], nodes(a=100)) is None
