"""The thesis's environment as PPO meets it: rewards, curriculum and the shipped file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import made

from ces_rl.envs.simulation import RUNNING, SUCCESS
from ces_rl.envs.thesis.env import Balance, Thesis, ThesisSettings
from ces_rl.problems.source import curriculum
from ces_rl.schedules import linear

SMALL = {"updates": 4, "problems": 24, "minibatch_size": 64, "evaluate_every": 2}
WIDTH = {"width": 16, "validation": 3}


@pytest.mark.parametrize("heuristic", [0.0, 0.8])
def test_rewards_are_the_sums_that_the_thesis_writes(heuristic: float) -> None:
    """Eqs 4-25 and 4-32: base, weighted heuristic and, at the end of a success, the final reward."""
    settings = ThesisSettings(
        base_weight=0.3, heuristic_weights=(0.1, 0.2, 0.3, 0.4, 0.5), heuristic=(0.0, heuristic), curriculum=0.0
    )
    vector, rng = Thesis(settings).vector(30, 2), np.random.default_rng(2)
    vector.reset(1.0)
    slots, seen = vector.simulation.slots, 0
    while vector.running.any():
        rows = np.flatnonzero(slots.status == RUNNING)
        rewards = vector.step(np.argmax(slots.mask * rng.random(slots.mask.shape), axis=1))
        assert (np.delete(rewards, rows) == 0).all()
        for i in rows.tolist():
            terms = slots.terms[i]
            expected = 0.3 * terms[0] + heuristic * (terms[1:] @ [0.1, 0.2, 0.3, 0.4, 0.5])
            if slots.status[i] == SUCCESS:
                imbalance, satisfaction, use = slots.outcome[i]
                expected += 0.5 * (1 - imbalance) + 0.5 * satisfaction + 0.02 * use
            assert rewards[i] == pytest.approx(expected, abs=1e-5)
            seen += 1
    assert seen > 100
    assert vector.success.any()


@pytest.mark.needs("torch")
def test_a_rollout_keeps_the_rewards_of_its_environment() -> None:
    """Row by row, in the slots and turns that they were earned in."""
    trainer = made("ppo", "thesis", 2, SMALL | {"problems": 30}, WIDTH | {"base_weight": 0.3})
    vector = trainer.vector
    vector.reset(1.0)
    earned: list[Any] = []
    step = vector.step

    def watched(actions: Any) -> Any:
        rows, rewards = np.flatnonzero(vector.running), step(actions)
        earned.extend(zip(rows, rewards[rows], strict=True))
        return rewards

    vector.step = watched
    batch = trainer.rollout(1.0)
    assert len(batch.rewards) == len(earned)
    assert list(zip(batch.slot, batch.rewards, strict=True)) == earned


def test_the_curriculum_begins_small_and_roomy_and_the_heuristic_fades() -> None:
    s = ThesisSettings()
    at = curriculum(s.odds, s.nodes, s.tasks, share=s.curriculum, first_tasks=0.0, first_odds=0.0)
    first, last = at(0.0), at(1.0)
    assert (first.tasks.tolist(), last.tasks.tolist()) == ([3, 3], [3, 8])
    np.testing.assert_allclose(first.odds, [1, 1, 1])
    np.testing.assert_allclose(last.odds, [1 / 3, 2 / 3, 1])
    assert [linear(s.heuristic, done) for done in (0.0, 0.5, 1.0)] == pytest.approx([0.8, 0.45, 0.1])
    assert (Thesis.bandwidth, Balance.bandwidth) == (True, False)
    assert Balance.defaults("ppo") == Thesis.defaults("ppo")


@pytest.mark.needs("torch")
@pytest.mark.parametrize("env", ["thesis", "balance"])
def test_torch_and_onnx_runtime_agree(env: str, tmp_path: Path) -> None:
    import torch

    from ces_core.learned.thesis.policy import BANDWIDTH, MAPPING, load_thesis_policy
    from ces_core.learned.thesis.schema import LEVELS, NODES
    from ces_core.learned.thesis.schema import WIDTH as STATE
    from ces_core.model.errors import PolicyError
    from ces_rl.envs.thesis.network import export

    trainer = made("ppo", env, 3, SMALL, WIDTH)
    trainer.update()
    file = tmp_path / "policy.onnx"
    export(trainer.policy, file, "test-1", {"seed": 3})
    heads = (MAPPING, BANDWIDTH) if env == "thesis" else (MAPPING,)
    policy = load_thesis_policy(file, *heads)
    assert (policy.version, policy.card) == ("test-1", {"seed": 3})
    states = np.random.default_rng(0).random((7, STATE), dtype=np.float32)
    state, mask = torch.from_numpy(states), torch.ones(7, max(NODES, LEVELS), dtype=torch.bool)
    for phase, (head, size) in enumerate(zip(heads, (NODES, LEVELS), strict=False)):
        with torch.no_grad():
            scores = trainer.policy(state, torch.full((7,), phase), mask)[0].numpy()
        np.testing.assert_allclose(policy.scores(head, states), scores[:, :size], atol=1e-4)
    if env == "balance":
        with pytest.raises(PolicyError, match="does not answer"):
            load_thesis_policy(file, MAPPING, BANDWIDTH)
