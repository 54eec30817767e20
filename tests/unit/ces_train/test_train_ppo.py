"""Training, export and what is refused: everything here needs torch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import assert_same, taken_up, weights

from ces_train.drawing import draw, kinds, new_random
from ces_train.settings import Settings

pytestmark = pytest.mark.needs("torch")

SMALL = Settings("small", updates=4, instances=6, group=4, width=16, minibatch=64, evaluate_every=2, validation=3)


def test_the_same_seed_trains_the_same_also_when_taken_up_again(tmp_path: Path) -> None:
    from ces_train.ppo import Trainer

    whole = Trainer(SMALL, 5)
    begun = weights(whole)
    measured = [whole.update() for _ in range(3)]
    assert all(np.isfinite(list(each.values())).all() for each in measured)
    assert any((begun[name] != value).any() for name, value in weights(whole).items())
    assert_same(whole, taken_up(lambda: Trainer(SMALL, 5), tmp_path, after=1, updates=3))
    with pytest.raises(ValueError, match="another seed"):
        Trainer(SMALL, 6).restore(whole.state())


def test_it_learns_what_can_be_learned_in_seconds() -> None:
    """From blank weights, on easy problems, drawn plans become better."""
    import torch

    from ces_train.ppo import Trainer

    trainer = Trainer(
        replace(SMALL, updates=60, instances=24, group=8, tasks=(3, 4), minibatch=512, rate=(3e-3, 1e-3)), 1
    )
    with torch.no_grad():
        trainer.policy.prior.weight.zero_()
    composites = [trainer.update()["composite"] for _ in range(25)]
    assert np.mean(composites[-5:]) > np.mean(composites[:5]) + 0.01


def test_advantages_are_the_sums_that_the_thesis_writes() -> None:
    from ces_train.ppo import Batch, Trainer

    trainer = Trainer(replace(SMALL, discount=0.9, trace=0.8), 0)
    values = np.array([0.5, 0.1, 0.2, 0.4, 0.3], dtype=np.float32)
    game, turn = np.array([0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2])
    nothing = np.zeros(5)
    batch = Batch(nothing, nothing, nothing, nothing.astype(np.int64), nothing, values, game, turn)
    advantage, target = trainer._advantages(batch, np.array([1.0, -1.0], dtype=np.float32))
    for which, final in ((0, 1.0), (1, -1.0)):
        rows = np.flatnonzero(game == which)
        v, r = values[rows], np.zeros(len(rows))
        r[-1] = final
        ahead = np.append(v[1:], 0.0)
        delta = r + 0.9 * ahead - v
        for i in range(len(rows)):
            expected = sum((0.9 * 0.8) ** k * delta[i + k] for k in range(len(rows) - i))
            assert advantage[rows[i]] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(target, advantage + values, atol=1e-6)


def test_the_curriculum_rises_to_what_the_preset_asks_for() -> None:
    from ces_train.ppo import lesson

    first, last = lesson(SMALL, 0.0), lesson(SMALL, 1.0)
    assert first.tasks[1] < last.tasks[1] == 8
    assert first.odds[0] > last.odds[0] == pytest.approx(1 / 3)


def test_torch_and_onnx_runtime_agree_at_any_size(tmp_path: Path) -> None:
    from ces_core.policy.onnx import load_policy
    from ces_train.export import export
    from ces_train.games import Games, Most
    from ces_train.ppo import Trainer

    trainer = Trainer(SMALL, 3)
    trainer.update()
    export(trainer.policy, tmp_path / "policy.onnx", "test-1", {"seed": 3})
    policy = load_policy(tmp_path / "policy.onnx")
    assert (policy.version, policy.card) == ("test-1", {"seed": 3})
    for nodes in (3, 10, 40):
        pool = draw(new_random(nodes), kinds({"tight": 1.0}, (nodes, nodes), (2, 5)), 7)
        games = Games(7, Most.of(pool))
        games.start(pool, np.arange(7))
        seen = games.seats.nodes, games.seats.context, games.seats.mask
        mask = games.seats.mask
        np.testing.assert_allclose(policy.scores(*seen)[mask], trainer.scores(*seen)[mask], atol=1e-4)
        assert np.isneginf(policy.scores(*seen)[~mask]).all()


def test_a_run_leaves_policy_card_and_log_and_goes_on_only_when_told(tmp_path: Path) -> None:
    from ces_train.running import RunExistsError, course, train

    seen: list[tuple[int, int]] = []
    settings = replace(SMALL, updates=2)

    def go(resume: bool) -> dict[str, Any]:
        return train(
            course(settings, 1),
            tmp_path,
            minutes=None,
            resume=resume,
            news=lambda done, total, _: seen.append((done, total)),
        )

    card = go(resume=False)
    assert seen == [(1, 2), (2, 2)]
    assert json.loads((tmp_path / "model-card.json").read_text()) == json.loads(json.dumps(card))
    assert card["complete"]
    assert card["scores"]["greedy"].keys() == {"thesis", "tight", "scarce"}
    assert list((tmp_path / "tensorboard").iterdir())
    with pytest.raises(RunExistsError, match="--resume"):
        go(resume=False)
    again = go(resume=True)
    assert again["version"] == card["version"]
