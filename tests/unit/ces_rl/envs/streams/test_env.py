"""Streams are learned by PPO, by evolution strategies and by imitation of looks into the future, alike by seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from ces_rl.algorithms.es import Es, EsSettings
from ces_rl.algorithms.imitation import Imitation, ImitationSettings
from ces_rl.algorithms.ppo import Ppo, PpoSettings
from ces_rl.envs.base import play_greedy
from ces_rl.envs.streams.env import Streams, StreamsSettings
from ces_rl.envs.streams.features import CONTEXT, PLAN, PLAN_AT
from ces_rl.envs.streams.vector import REWARD

TINY: dict[str, Any] = {"jobs": 8, "loads": (1.2,), "width": 8, "ahead": 2, "validation": 2}


def env(**more: Any) -> Streams:
    return Streams(StreamsSettings(**TINY, **more))


def test_the_same_seed_learns_the_same_policy() -> None:
    def learned(seed: int) -> list[float]:
        run = Ppo(env(), PpoSettings(updates=1, problems=2, update_epochs=1), seed)
        run.update()
        return [float(part.detach().sum()) for part in run.solution.parameters()]

    assert learned(1) == learned(1) != learned(2)


def test_an_untrained_policy_begins_with_the_plan_that_the_criterion_values_most() -> None:
    vector = env().vector(4, 1)
    vector.reset(0.0)
    plans, context, mask = (torch.from_numpy(part) for part in vector.observe(np.arange(4)))
    chosen = env().policy()(plans, context, mask)[0].argmax(dim=1)
    assert plans[torch.arange(4), chosen, PLAN_AT["criterion-below-best"]].min() > -0.1
    assert (chosen < vector.actions - 1).all(), "nobody waits on a cluster on which nothing runs"


def test_streams_differ_by_their_seed() -> None:
    arrivals = []
    for seed in (1, 1, 2):
        vector = env().vector(1, seed)
        vector.reset(0.0)
        arrivals.append(vector.streams[0].arrivals.tolist())
    assert arrivals[0] == arrivals[1] != arrivals[2]
    assert len(arrivals[0]) == TINY["jobs"]


def test_what_is_earned_adds_up_to_the_score() -> None:
    vector = env().vector(2, 1)
    vector.reset(0.0)
    earned = play_greedy(env().policy(), vector)
    assert earned / REWARD / TINY["jobs"] == pytest.approx(vector.score, abs=1e-5)
    assert (vector.score <= vector.accepted + 1e-9).all()
    assert vector.success.all()


def test_waiting_is_not_offered_where_it_is_switched_off() -> None:
    for waits in (True, False):
        vector = env(waits=waits).vector(1, 1)
        vector.reset(0.0)
        offered = False
        while vector.running[0]:
            offered |= bool(vector.mask[0, -1])
            vector.step(np.array([int(vector.mask[0].argmax())]))
        assert offered == waits


def test_a_look_ahead_teaches_by_regret() -> None:
    run = Imitation(env(), ImitationSettings(updates=1, episodes=1, gradient_steps=2, batch_size=4, threads=1), 1)
    measured = run.update()
    assert measured["regret"] >= 0
    assert measured["dataset"] > 0


def test_evolution_moves_the_linear_part() -> None:
    small = env()
    small.searched_episodes = 1  # type: ignore[misc]
    run = Es(small, EsSettings(updates=1, pairs=2, sigma=50.0), 1)
    assert len(run.current) == len(PLAN)
    before = run.current.copy()
    run.update()
    assert (run.current != before).any()


def test_what_ships_takes_any_number_of_plans(tmp_path: Path) -> None:
    place = env()
    file = tmp_path / "policy.onnx"
    place.export(place.policy(), file, "test", {})
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    for count in (2, 9):
        given = {
            "plans": np.zeros((3, count, len(PLAN)), np.float32),
            "context": np.zeros((3, len(CONTEXT)), np.float32),
            "mask": np.ones((3, count), np.float32),
        }
        assert session.run(["scores"], given)[0].shape == (3, count)
