"""A look into the future tells what a choice comes to."""

from __future__ import annotations

import numpy as np
import pytest

from ces_rl.envs.streams.features import seen
from ces_rl.envs.streams.lookahead import Lookahead, play_by_rule, take
from ces_rl.envs.streams.proposals import attitudes, propose
from ces_rl.envs.streams.stream import Scenario, Stream

JOBS = 14


def begun() -> Stream:
    stream = Stream(Scenario.draw("tight", 1.2, JOBS, 11))
    for _ in range(4):
        take(stream, propose(stream.problem, attitudes()[:1]), 0)
    return stream


def test_with_the_true_future_it_is_what_comes_to_pass() -> None:
    stream = begun()
    found = propose(stream.problem, attitudes())
    _, _, allowed = seen(stream, found, durations=False)
    worth = Lookahead(JOBS, 0).judge(stream, found, allowed, np.random.default_rng(0))
    assert np.isneginf(worth[~allowed]).all()
    for choice in np.flatnonzero(allowed).tolist():
        tried = stream.copy()
        take(tried, found, choice)
        play_by_rule(tried)
        assert worth[choice] == pytest.approx(tried.served - stream.served)


def test_made_up_futures_differ_by_their_seed_alone() -> None:
    stream = begun()
    found = propose(stream.problem, attitudes())
    _, _, allowed = seen(stream, found, durations=False)
    looks = [Lookahead(5, 2).judge(stream, found, allowed, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert looks[0].tolist() == looks[1].tolist()
    assert looks[0].tolist() != looks[2].tolist()
