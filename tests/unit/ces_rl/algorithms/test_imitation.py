"""Imitation of a search: what a policy learns from judged decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import assert_same, made, taken_up

pytestmark = pytest.mark.needs("torch")

SMALL = {"updates": 4, "episodes": 8, "limit": 60, "gradient_steps": 5, "batch_size": 32, "threads": 2}
FINE = {
    "updates": 2, "problems": 4, "group": 2, "minibatch_size": 64, "learning_rate": (1e-4, 1e-5),
    "temperature": (1.0, 1.0),
}  # fmt: skip


def small(**settings: Any) -> Any:
    return made("imitation", "placement", 5, SMALL | settings, {"width": 16})


def test_the_same_seed_teaches_the_same_also_when_taken_up_again(tmp_path: Path) -> None:
    """Taken up amid the run and after it, by PPO too, and whatever the number of threads."""
    from ces_rl.run import Run

    whole = small()
    measured = [whole.update() for _ in range(4)]
    assert ["imitation_loss" in each for each in measured] == [True] * 4
    assert measured[-1]["dataset"] == whole.steps
    assert whole.dataset is None
    for after in (2, 4):
        assert_same(whole, taken_up(small, tmp_path, after=after, updates=4))

    def tuned() -> Any:
        return made("ppo", "placement", 5, FINE | {"start_from": str(tmp_path)}, {"width": 16})

    Run(("", ""), whole, whole.env, tmp_path).save()
    one, other = tuned(), tuned()
    assert "imitation_loss" not in one.update()
    other.update()
    assert_same(one, other)
    alone, again = small(threads=1), small()
    alone.update()
    again.update()
    assert_same(alone, again)


def test_the_loss_is_least_where_odds_fall_with_regret() -> None:
    import torch

    from ces_rl.algorithms.imitation import expected_regret

    regret = torch.tensor([[0.0, 0.004, 0.012, 0.1]])
    mask = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    scores = torch.zeros(1, 4, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.05)
    for _ in range(400):
        forbidden = scores * mask - 1e9 * (1.0 - mask)
        loss = expected_regret(forbidden, mask, regret, 0.004).sum()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    odds = torch.softmax(scores[0, :3], 0).detach().numpy()
    expected = np.exp([0.0, -1.0, -3.0])
    np.testing.assert_allclose(odds, expected / expected.sum(), atol=1e-3)


def test_it_learns_what_can_be_learned_in_seconds() -> None:
    """From blank weights the nodes that it thinks best cost less and less."""
    import torch

    settings = SMALL | {"updates": 10, "episodes": 32, "gradient_steps": 60, "batch_size": 64}
    trainer = made("imitation", "placement", 1, settings, {"tasks": (3, 4), "width": 16})
    with torch.no_grad():
        trainer.policy.prior.weight.zero_()
    regret = [trainer.update()["regret"] for _ in range(8)]
    assert np.mean(regret[-3:]) < 0.7 * regret[0]
