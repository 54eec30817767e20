"""PPO on both environments, whatever the policy: everything here needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import assert_same, made, taken_up, weights

pytestmark = pytest.mark.needs("torch")

SMALL = {"updates": 4, "problems": 6, "group": 4, "minibatch_size": 64, "evaluate_every": 2}
THESIS = {"updates": 4, "problems": 24, "minibatch_size": 64, "evaluate_every": 2}
WIDTH = {"width": 16, "validation": 3}


def small(seed: int, **env: Any) -> Any:
    return made("ppo", "placement", seed, SMALL, WIDTH | env)


def test_the_same_seed_trains_the_same_also_when_taken_up_again(tmp_path: Path) -> None:
    whole = small(5)
    begun = weights(whole)
    measured = [whole.update() for _ in range(3)]
    assert all(np.isfinite(list(each.values())).all() for each in measured)
    assert any((begun[name] != value).any() for name, value in weights(whole).items())
    assert_same(whole, taken_up(lambda: small(5), tmp_path, after=1, updates=3))
    with pytest.raises(ValueError, match="another seed"):
        small(6).restore(whole.state())


@pytest.mark.parametrize("env", ["thesis", "balance"])
def test_the_same_seed_trains_the_same_on_the_thesis_environment(env: str, tmp_path: Path) -> None:
    def make(seed: int = 5) -> Any:
        return made("ppo", env, seed, THESIS, WIDTH)

    whole = make()
    begun = weights(whole)
    measured = [whole.update() for _ in range(3)]
    assert all(np.isfinite(list(each.values())).all() for each in measured)
    assert all((begun[name] != value).any() for name, value in weights(whole).items())
    assert_same(whole, taken_up(make, tmp_path, after=1, updates=3))
    with pytest.raises(ValueError, match="another seed"):
        make(6).restore(whole.state())


def test_it_learns_what_can_be_learned_in_seconds() -> None:
    """From blank weights, on easy problems, drawn plans become better."""
    import torch

    settings = SMALL | {"updates": 60, "problems": 24, "group": 8, "minibatch_size": 512, "learning_rate": (3e-3, 1e-3)}
    trainer = made("ppo", "placement", 1, settings, WIDTH | {"tasks": (3, 4)})
    with torch.no_grad():
        trainer.policy.prior.weight.zero_()
    scores = [trainer.update()["score"] for _ in range(25)]
    assert np.mean(scores[-5:]) > np.mean(scores[:5]) + 0.01


def test_it_learns_the_thesis_environment_in_seconds() -> None:
    """Where bandwidth is plenty, higher levels are better: drawn plans come to give them."""
    easy = {"odds": {"thesis": 1.0}, "tasks": (3, 4), "width": 32, "validation": 3}
    trainer = made("ppo", "thesis", 1, THESIS | {"updates": 100, "problems": 128, "minibatch_size": 512}, easy)
    scores = [trainer.update()["score"] for _ in range(30)]
    assert np.mean(scores[-5:]) > np.mean(scores[:5]) + 0.05


def advantages_of(values: Any, rewards: Any, slot: Any, turn: Any) -> tuple[Any, Any]:
    """What PPO makes of five decisions, whatever their observations."""
    from ces_rl.algorithms.ppo import Batch

    trainer = made("ppo", "thesis", 0, THESIS | {"gamma": 0.9, "gae_lambda": 0.8}, WIDTH)
    none = np.zeros(len(values), dtype=np.int64)
    found: tuple[Any, Any] = trainer.advantages(Batch((none,), none, none, none, values, rewards, slot, turn))
    return found


@pytest.mark.parametrize(
    "rewards", [[0.1, 0.0, 0.0, -0.8, 1.0], [0.0, 0.0, 0.0, -1.0, 1.0]], ids=["at every step", "at the end alone"]
)
def test_advantages_are_the_sums_that_the_thesis_writes(rewards: list[float]) -> None:
    values = np.array([0.5, 0.1, 0.2, 0.4, 0.3], dtype=np.float32)
    earned = np.array(rewards, dtype=np.float32)
    slot, turn = np.array([0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2])
    advantages, returns = advantages_of(values, earned, slot, turn)
    for which in (0, 1):
        rows = np.flatnonzero(slot == which)
        v, r = values[rows], earned[rows]
        delta = r + 0.9 * np.append(v[1:], 0.0) - v
        for i in range(len(rows)):
            expected = sum((0.9 * 0.8) ** k * delta[i + k] for k in range(len(rows) - i))
            assert advantages[rows[i]] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(returns, advantages + values, atol=1e-6)


def test_a_final_reward_comes_with_the_last_decision_of_its_episode() -> None:
    from ces_rl.algorithms.ppo import Batch, at_last_turn

    none = np.zeros(5, dtype=np.int64)
    slot, turn = np.array([0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2])
    batch = Batch((none,), none, none, none, none, none, slot, turn)
    finals = np.array([1.0, -1.0, 7.0], dtype=np.float32)  # slot 2 never had a decision
    assert at_last_turn(batch, finals).tolist() == [0, 0, 0, -1, 1]


def test_a_run_that_begins_with_another_goes_on_from_its_weights_and_generators(tmp_path: Path) -> None:
    from ces_rl.run import Run

    first = small(5)
    first.update()
    Run(("", ""), first, first.env, tmp_path).save()
    again = made("ppo", "placement", 9, SMALL | {"start_from": str(tmp_path)}, WIDTH)
    assert (again.updates, again.steps) == (0, 0)
    for name, value in weights(first).items():
        np.testing.assert_array_equal(weights(again)[name], value)
    assert again.vector.state() == first.vector.state()
    with pytest.raises(ValueError, match=r"holds no checkpoint\.pt"):
        made("ppo", "placement", 9, SMALL | {"start_from": str(tmp_path / "none")}, WIDTH)
    with pytest.raises(ValueError, match="sees other features"):
        made("ppo", "thesis", 9, THESIS | {"start_from": str(tmp_path)}, WIDTH)
