"""The Gymnasium environment of one job."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
checker = pytest.importorskip("gymnasium.utils.env_checker")
adapter = pytest.importorskip("ces_rl.gym")
pytestmark = pytest.mark.needs("torch")


def test_gymnasium_accepts_the_adapter() -> None:
    env = adapter.PlacementEnv()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(env, skip_render_check=True)
    seen, _ = env.reset(seed=4)
    reward, done = 0.0, False
    while not done:
        assert reward == 0.0
        seen, reward, done, _, _ = env.step(np.int64(np.flatnonzero(seen["mask"])[0]))
    assert 0.0 < reward < 1.0
    seen, _ = env.reset(seed=4)
    assert not seen["mask"].all()
    forbidden = np.int64(np.argmin(seen["mask"]))
    assert env.step(forbidden)[1:3] == (0.0, True)


def test_it_is_made_by_its_name_and_tells_its_masks() -> None:
    assert adapter.ID in gymnasium.registry
    made = gymnasium.make("ces/Placement-v0", nodes=6, tasks=(3, 4))
    assert type(gymnasium.make("ces_rl.gym:ces/Placement-v0").unwrapped) is type(made.unwrapped)
    seen, _ = made.reset(seed=1)
    env: Any = made.unwrapped
    assert seen["nodes"].shape[0] == 6
    done = False
    while not done:
        assert (env.action_masks() == seen["mask"].astype(bool)).all()
        assert env.action_masks().any()
        seen, _, done, _, _ = made.step(np.int64(np.argmax(env.action_masks())))
    assert not env.action_masks().any()
