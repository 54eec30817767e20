"""The bandwidth rules that the baselines differ in, on cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.bandwidth.composite import Allocation
from ces_core.baselines.rates import Shortfall, Step, best_effort, by_importance, fair, fill, random_levels
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.registry import get_solver


def pinned(links: list[Link], flows: list[Flow], media: dict[str, float] | None = None) -> Problem:
    """Tasks a, b, c, d, each bound to the node of its name."""
    cluster = Cluster.make([Node(name, cpu=1) for name in "abcd"], links, media or {})
    return Problem.make(cluster, [Task(name, cpu=1, allowed=(name,)) for name in "abcd"], flows)


def served(step: Step, problem: Problem, seed: int = 0) -> Allocation | Shortfall:
    return step(problem, range(4), np.random.default_rng(seed))


def rates(step: Step, problem: Problem, seed: int = 0) -> tuple[float, ...]:
    found = served(step, problem, seed)
    assert isinstance(found, Allocation)
    return found.bandwidth


SHARED = [Link("a", "b", 100)]


def test_importance_gives_a_share_of_the_range_even_where_links_idle() -> None:
    # Degrees: a 3, b 1, c 2, d 2. a -> b: 4, a -> c: 5, a -> d: 5, c -> d: 4; relative to 5.
    links = [Link("a", "b", 1e3), Link("a", "c", 1e3), Link("a", "d", 1e3), Link("c", "d", 1e3)]
    flows = [Flow("a", "b", 10, 60), Flow("a", "c", 10, 60), Flow("a", "d", 20, 20), Flow("c", "d", 0, 100)]
    problem = pinned(links, flows)
    assert rates(by_importance, problem) == pytest.approx((10 + 0.8 * 50, 60, 20, 80))
    assert rates(fill, problem) == (60, 60, 20, 100)


def test_the_important_flow_is_served_first_once_all_have_their_minimum() -> None:
    links = [Link("a", "b", 100), Link("b", "c", 100)]
    flows = [Flow("a", "b", 10, 100), Flow("a", "c", 10, 100), Flow("b", "c", 10, 100)]
    problem = pinned(links, flows)
    # All ends have degree 2. By index, the first takes what a -> b has left, the third what b -> c has left.
    assert rates(by_importance, problem) == pytest.approx((90, 10, 90))
    with_hub = pinned([*links, Link("c", "d", 100)], [*flows, Flow("c", "d", 0, 100)])
    # Degrees: a 2, b 2, c 3, d 1; importance 4, 5, 5, 4. a -> c first: it takes all that is left on both links.
    assert rates(by_importance, with_hub) == pytest.approx((10, 90, 10, 80))


def test_fair_rates_keep_minimums() -> None:
    links = [Link("a", "b", 100)]
    two = [Flow("a", "b", 70, 100), Flow("@a", "b", 10, 100)]
    assert rates(fair, pinned(links, two)) == pytest.approx((70, 30))
    short = served(fair, pinned(links, [Flow("a", "b", 70, 100), Flow("@a", "b", 40, 100)]))
    assert short == Shortfall(1, 30)


def test_without_reservations_flows_share_evenly_and_some_miss_their_minimum() -> None:
    flows = [Flow("a", "b", 20, 100), Flow("@a", "b", 20, 100), Flow("a", "@b", 10, 30)]
    assert rates(best_effort, pinned(SHARED, flows)) == pytest.approx((35, 35, 30))
    # 60 + 10 would fit, but who does not reserve gets an even share.
    uneven = pinned(SHARED, [Flow("a", "b", 60, 100), Flow("@a", "b", 10, 100)])
    assert served(best_effort, uneven) == Shortfall(0, 50)
    assert isinstance(served(fill, uneven), Allocation)


def test_without_reservations_only_one_of_two_equal_ways_is_used() -> None:
    links = [Link("a", "b", 50), Link("b", "d", 50), Link("a", "c", 50), Link("c", "d", 50)]
    problem = pinned(links, [Flow("a", "d", 40, 40), Flow("@a", "d", 40, 40)])
    assert served(best_effort, problem) == Shortfall(0, 25)
    assert rates(fill, problem) == (40, 40)


def test_the_blind_solver_calls_a_missed_minimum_what_it_is() -> None:
    uneven = pinned(SHARED, [Flow("a", "b", 60, 100), Flow("@a", "b", 10, 100)])
    assert get_solver("least-allocated").solve(uneven).feasible
    reason = get_solver("least-allocated-blind").solve(uneven).reason
    assert reason is not None
    assert (reason.code, reason.proven, reason.flow) == ("bandwidth-together", False, ("a", "b"))
    assert (reason.needed, reason.available) == (60, 50)


def test_random_levels_are_even_steps_from_minimum_to_maximum() -> None:
    problem = pinned(SHARED, [Flow("a", "b", 10, 50)])
    drawn = [rates(random_levels(5), problem, seed)[0] for seed in range(200)]
    assert set(drawn) == {10, 20, 30, 40, 50}
    assert min(drawn.count(rate) for rate in set(drawn)) > 20  # 40 each, give or take 6


def test_a_level_that_does_not_fit_takes_what_is_left_down_to_the_minimum() -> None:
    problem = pinned(SHARED, [Flow("a", "b", 60, 60), Flow("@a", "b", 10, 90)])
    assert {rates(random_levels(2), problem, seed)[1] for seed in range(20)} == {10, 40}
    full = pinned(SHARED, [Flow("a", "b", 60, 60), Flow("@a", "b", 50, 90)])
    assert served(random_levels(2), full) == Shortfall(1, 40)


@pytest.mark.parametrize("step", [fill, fair, by_importance, best_effort, random_levels(3)])
def test_every_rule_knows_media_and_missing_ways(step: Step) -> None:
    air = [Link("a", "b", 100, medium="air"), Link("b", "c", 100, medium="air")]
    over_the_air = pinned(air, [Flow("a", "c", 50, 50)], {"air": 80})
    assert served(step, over_the_air) == Shortfall(0, 40)
    assert rates(step, pinned(air, [Flow("a", "c", 50, 50)], {"air": 100})) == (50,)
    assert served(step, pinned([], [Flow("a", "b", 0, 1)])) == Shortfall(0, 0)
    assert rates(step, pinned([], [])) == ()
