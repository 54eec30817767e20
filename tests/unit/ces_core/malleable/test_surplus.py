"""What is free beside minimum shares, and who gets it."""

from __future__ import annotations

from hypothesis import given
from malleable_jobs import CONCAVE, FALLING, job, jobs, running

from ces_core.malleable.admission import Shares, minimum_shares
from ces_core.malleable.model import MalleableJob, Running
from ces_core.malleable.surplus import give_surplus, give_surplus_strictly, saved_gpu_s

SLOT = 10.0


def sizes_of(active: list[Running], gpus: int) -> dict[str, int]:
    shares = minimum_shares(active, 0.0, gpus, SLOT)
    give_surplus(active, shares, SLOT)
    return {name: plan.size for name, plan in shares.plans.items()}


def test_all_of_it_goes_to_the_only_one() -> None:
    assert sizes_of([running(job("a", 100.0, 1000.0))], 4) == {"a": 4}


def test_it_goes_to_whom_it_wastes_least() -> None:
    """Twice as many GPUs are twice as fast for the one and 1.6 times as fast for the other."""
    active = [running(job("concave", 100.0, 1000.0, CONCAVE)), running(job("linear", 100.0, 1000.0))]
    assert sizes_of(active, 3) == {"concave": 1, "linear": 2}


def test_who_would_wait_comes_first() -> None:
    """Alone, the first would take three of the four; the second would begin after its end."""
    first, second = running(job("first", 60.0, 30.0)), running(job("second", 10.0, 2000.0, arrived_s=1.0))
    shares = Shares(**vars(minimum_shares([first, second], 0.0, 2, SLOT)))
    assert shares.plans["second"].size == 0
    assert sizes_of([first, second], 3) == {"first": 2, "second": 1}


def test_nobody_gets_a_size_that_is_slower() -> None:
    assert sizes_of([running(job("a", 100.0, 1000.0, FALLING))], 4) == {"a": 2}


@given(jobs())
def test_on_time_stays_on_time_and_within_capacity(found: list[MalleableJob]) -> None:
    active = [running(one) for one in found]
    shares = minimum_shares(active, 120.0, 8, SLOT)
    before = set(shares.late)
    give_surplus(active, shares, SLOT)
    assert {name for name, plan in shares.plans.items() if not plan.on_time} <= before
    assert min(shares.free.free) >= 0
    assert sum(plan.size for plan in shares.plans.values()) + shares.free_now == 8
    for each in active:  # nothing is left that somebody could have
        larger = each.profile.above(shares.plans[each.name].size)
        if larger and not shares.plans[each.name].on_time:
            assert larger - shares.plans[each.name].size > shares.free_now


@given(jobs(4))
def test_looking_again_at_each_offer_leaves_nothing_over_either(found: list[MalleableJob]) -> None:
    active = [running(one) for one in found]
    shares = minimum_shares(active, 120.0, 8, SLOT)
    give_surplus_strictly(active, shares, SLOT, saved_gpu_s, keep=True)
    assert min(shares.free.free) >= 0
    lazily = minimum_shares(active, 120.0, 8, SLOT)
    give_surplus(active, lazily, SLOT)
    assert (shares.free_now == 0) == (lazily.free_now == 0) or abs(shares.free_now - lazily.free_now) <= 4
