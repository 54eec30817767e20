"""What a policy is taught before it plays for reward."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trainers import assert_same, taken_up

from ces_train.settings import GENERAL, Teaching

pytestmark = pytest.mark.needs("torch")

TAUGHT = Teaching(rounds=4, instances=8, limit=60, steps=5, batch=32, threads=2)
SMALL = replace(GENERAL, teaching=TAUGHT, updates=6, instances=4, group=2, width=16, minibatch=64)


def test_the_same_seed_teaches_the_same_also_when_taken_up_again(tmp_path: Path) -> None:
    """Taken up amid the teaching and after it, and whatever the number of threads."""
    from ces_train.ppo import Trainer

    whole = Trainer(SMALL, 5)
    measured = [whole.update() for _ in range(5)]
    assert ["lesson-loss" in each for each in measured] == [True] * 4 + [False]
    for after in (2, 4):
        assert_same(whole, taken_up(lambda: Trainer(SMALL, 5), tmp_path, after=after, updates=5))
    alone = Trainer(replace(SMALL, teaching=replace(TAUGHT, threads=1)), 5)
    alone.update()
    again = Trainer(SMALL, 5)
    again.update()
    assert_same(alone, again)


def test_the_loss_is_least_where_odds_fall_with_regret() -> None:
    import torch

    from ces_train.teaching import expected_regret

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

    from ces_train.ppo import Trainer

    taught = replace(TAUGHT, rounds=10, instances=32, steps=60, batch=64)
    trainer = Trainer(replace(SMALL, tasks=(3, 4), teaching=taught, updates=10), 1)
    with torch.no_grad():
        trainer.policy.prior.weight.zero_()
    shortfall = [trainer.update()["shortfall"] for _ in range(8)]
    assert np.mean(shortfall[-3:]) < 0.7 * shortfall[0]
