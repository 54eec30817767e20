"""Multi-agent PPO. Everything here needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import assert_same, made, taken_up, weights

pytestmark = pytest.mark.needs("torch")

SMALL = {"updates": 4, "problems": 2, "minibatch_size": 64, "evaluate_every": 2}
TINY = {"width": 8, "layers": 1, "heads": 2, "validation": 2}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in a run: with more, tiny layers wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small(seed: int, settings: dict[str, Any] | None = None, **env: Any) -> Any:
    return made("mappo", "tapfinger", seed, SMALL | (settings or {}), TINY | env)


def test_the_same_seed_trains_the_same_also_when_taken_up_again(tmp_path: Path) -> None:
    whole = small(5)
    begun = weights(whole)
    measured = [whole.update() for _ in range(3)]
    assert all(np.isfinite(list(each.values())).all() for each in measured)
    assert [each["advice"] for each in measured] == [1.0, 0.5, 0.0]
    assert any((begun[name] != value).any() for name, value in weights(whole).items())
    assert_same(whole, taken_up(lambda: small(5), tmp_path, after=1, updates=3))
    with pytest.raises(ValueError, match="another seed"):
        small(6).restore(whole.state())


@pytest.mark.parametrize("variant", ["whole", "no-han", "no-pointer", "vanilla"])
def test_probabilities_are_those_that_actions_were_drawn_with(variant: str) -> None:
    """log p(task) + log p(amounts | task), of which the second does not count for those whose task goes to another, and
    neither for those that have nothing to choose."""
    import torch

    trainer = small(2, variant=variant, setting="synthetic")
    trainer.vector.reset(0.0)
    batch = trainer.rollout(1.0)
    observations = tuple(torch.from_numpy(part) for part in batch.observations)
    mask, actions = torch.from_numpy(batch.mask), torch.from_numpy(batch.actions)
    with torch.no_grad():
        log_prob, _, values, _ = trainer.judge(observations, mask, actions, 1.0)
        logits, _, _ = trainer.policy(*observations)
        tasks = torch.log_softmax(logits, -1).gather(-1, actions[..., :1]).squeeze(-1)
    np.testing.assert_allclose(log_prob.numpy(), batch.log_prob, atol=1e-4)
    np.testing.assert_allclose(values.numpy(), batch.values, atol=1e-4)
    lost = batch.actions[..., 2] == 1
    assert lost.any()
    np.testing.assert_allclose(batch.log_prob[lost], tasks.numpy()[lost], atol=1e-4)
    assert not batch.log_prob[~batch.mask].any()
    assert (batch.log_prob[batch.mask & ~lost] <= tasks.numpy()[batch.mask & ~lost] + 1e-4).all()


def test_advice_is_what_the_rule_chooses_in_the_same_world() -> None:
    trainer = small(2)
    trainer.vector.reset(0.0)
    observed = trainer.vector.observe(np.arange(2))
    expected = trainer.vector.advice(np.arange(2))
    actions, _, _ = trainer.act(np.arange(2), observed, trainer.vector.mask, 1.0)
    np.testing.assert_array_equal(actions[..., 3:], expected)


def test_agents_without_a_choice_do_not_move_the_normalisation() -> None:
    trainer = small(2)
    advantages = np.array([[1.0, 500.0], [3.0, 500.0]], dtype=np.float32)
    mask = np.array([[True, False], [True, False]])
    np.testing.assert_allclose(trainer.normalised(advantages, mask)[:, 0], [-1.0, 1.0], rtol=1e-5)


@pytest.mark.parametrize("advice", [0.0, 1.0])
def test_a_team_learns_what_each_is_shown(advice: float) -> None:
    """A third of the tasks and a quarter of the amounts are right by chance; both come to be."""
    from toy_team import ToyTeam, ToyTeamSettings

    from ces_rl.algorithms.mappo import Mappo, MappoSettings

    settings = MappoSettings(
        updates=40,
        problems=64,
        minibatch_size=64,
        learning_rate=(0.05, 0.05),
        advice=(advice, 0.0),
        ent_coef=(0.0, 0.0),
    )  # fmt: skip
    trainer = Mappo(ToyTeam(ToyTeamSettings()), settings, 1)
    scores = [trainer.update()["score"] for _ in range(40)]
    assert scores[0] < 0.8
    assert scores[-1] > 1.7


def test_advice_teaches_in_seconds() -> None:
    settings = {"updates": 60, "problems": 8, "minibatch_size": 128, "learning_rate": (1e-3, 1e-3)}
    trainer = small(1, settings, width=16, heads=2, setting="synthetic")
    scores = [trainer.update()["score"] for _ in range(12)]
    assert scores[-1] < 8.0 < min(scores[:4])
