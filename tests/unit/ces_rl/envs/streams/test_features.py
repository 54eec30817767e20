"""What a policy sees of plans: compared with each other, none twice, and waiting where something runs."""

from __future__ import annotations

import numpy as np

from ces_rl.envs.streams.features import CONTEXT, DURATIONS, PLAN, PLAN_AT, room_value, seen
from ces_rl.envs.streams.lookahead import take
from ces_rl.envs.streams.proposals import attitudes, propose
from ces_rl.envs.streams.stream import Scenario, Stream

BELOW = [PLAN_AT[name] for name in PLAN if name.endswith(("-below-best", "-below-most"))]


def test_plans_are_compared_with_the_best() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, 12, 21))
    plans, context, _ = seen(stream, propose(stream.problem, attitudes()), durations=True)
    assert plans.shape == (7, len(PLAN))
    assert context.shape == (len(CONTEXT) + len(DURATIONS),)
    assert np.isfinite(plans).all()
    assert np.isfinite(context).all()
    assert (plans[:-1][:, BELOW] <= 1e-6).all()
    for column in BELOW:
        assert plans[:-1, column].max() == 0.0
    assert plans[-1, PLAN_AT["is-wait"]] == 1.0
    assert not plans[:-1, PLAN_AT["is-wait"]].any()


def test_a_plan_is_offered_once_and_waiting_while_something_runs() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, 12, 21))
    first = attitudes()[0]
    found = propose(stream.problem, (first, first))
    _, _, allowed = seen(stream, found, durations=False)
    assert allowed.tolist() == [True, False, False]
    take(stream, found, 0)
    _, _, allowed = seen(stream, propose(stream.problem, (first, first)), durations=False)
    assert allowed.tolist() == [True, False, True]


def test_room_is_worth_less_where_more_is_taken() -> None:
    stream = Stream(Scenario.draw("tight", 0.9, 12, 21))
    before = room_value(stream.cluster)
    take(stream, propose(stream.problem, attitudes()[:1]), 0)
    assert 0 < room_value(stream.cluster) < before
