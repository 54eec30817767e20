"""Training of the thesis's network and of its baseline: everything here needs torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import assert_same, taken_up, weights

from ces_train.drawing import draw, new_random
from ces_train.thesis_settings import BALANCE, THESIS, ThesisSettings

pytestmark = pytest.mark.needs("torch")

SMALL = replace(THESIS, updates=4, games=24, width=16, minibatch=64, evaluate_every=2, validation=3)
ALONE = replace(SMALL, preset="balance", bandwidth=False)


@pytest.mark.parametrize("settings", [SMALL, ALONE], ids=lambda settings: settings.preset)
def test_the_same_seed_trains_the_same_also_when_taken_up_again(settings: ThesisSettings, tmp_path: Path) -> None:
    from ces_train.thesis_ppo import ThesisTrainer

    whole = ThesisTrainer(settings, 5)
    begun = weights(whole)
    measured = [whole.update() for _ in range(3)]
    assert all(np.isfinite(list(each.values())).all() for each in measured)
    assert all((begun[name] != value).any() for name, value in weights(whole).items())
    assert_same(whole, taken_up(lambda: ThesisTrainer(settings, 5), tmp_path, after=1, updates=3))
    with pytest.raises(ValueError, match="another seed"):
        ThesisTrainer(settings, 6).restore(whole.state())


def test_it_learns_what_can_be_learned_in_seconds() -> None:
    """Where bandwidth is plenty, higher levels are better: drawn plans come to give them."""
    from ces_train.thesis_ppo import ThesisTrainer

    easy = replace(SMALL, updates=100, games=128, width=32, odds={"thesis": 1.0}, tasks=(3, 4), minibatch=512)
    trainer = ThesisTrainer(easy, 1)
    composites = [trainer.update()["composite"] for _ in range(30)]
    assert np.mean(composites[-5:]) > np.mean(composites[:5]) + 0.05


def test_rewards_are_the_sums_that_the_thesis_writes() -> None:
    """Eqs 4-25 and 4-32: base, weighted heuristic and, at the end of a game that is won, the final reward."""
    from ces_train.games import WON
    from ces_train.thesis_ppo import ThesisTrainer

    for heuristic in (0.0, 0.8):
        settings = replace(SMALL, games=30, base_weight=0.3, heuristic_weights=(0.1, 0.2, 0.3, 0.4, 0.5))
        trainer = ThesisTrainer(settings, 2)
        games = trainer._games
        from ces_train.thesis_ppo import lesson

        games.start(draw(new_random(1), lesson(settings, 1.0), 30), np.arange(30))
        seen: list[Any] = []
        step = games.step

        def watched(actions: Any, step: Any = step, seen: list[Any] = seen, seats: Any = games.seats) -> None:
            playing = seats.status == 0
            step(actions)
            seen.extend(zip(np.flatnonzero(playing), seats.terms[playing], seats.status[playing], strict=True))

        games.step = watched  # type: ignore[method-assign]
        batch = trainer._play(1.0, heuristic)
        assert len(batch.reward) == len(seen)
        for reward, game, (i, terms, status) in zip(batch.reward, batch.game, seen, strict=True):
            assert game == i
            expected = 0.3 * terms[0] + heuristic * (terms[1:] @ [0.1, 0.2, 0.3, 0.4, 0.5])
            if status == WON:
                imbalance, satisfaction, use = games.seats.outcome[i]
                expected += 0.5 * (1 - imbalance) + 0.5 * satisfaction + 0.02 * use
            assert reward == pytest.approx(expected, abs=1e-5)


def test_advantages_are_the_sums_that_the_thesis_writes() -> None:
    from ces_train.thesis_ppo import Batch, ThesisTrainer

    trainer = ThesisTrainer(replace(SMALL, discount=0.9, trace=0.8), 0)
    values = np.array([0.5, 0.1, 0.2, 0.4, 0.3], dtype=np.float32)
    rewards = np.array([0.1, 0.0, 0.0, -0.8, 1.0], dtype=np.float32)
    game, turn = np.array([0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2])
    none = np.zeros(5, dtype=np.int64)
    advantage, target = trainer._advantages(Batch(none, none, none, none, none, values, game, turn, rewards))
    for which in (0, 1):
        rows = np.flatnonzero(game == which)
        v, r = values[rows], rewards[rows]
        delta = r + 0.9 * np.append(v[1:], 0.0) - v
        for i in range(len(rows)):
            expected = sum((0.9 * 0.8) ** k * delta[i + k] for k in range(len(rows) - i))
            assert advantage[rows[i]] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(target, advantage + values, atol=1e-6)


def test_the_lesson_begins_small_and_roomy_and_the_heuristic_fades() -> None:
    from ces_train.thesis_ppo import between, lesson

    first, last = lesson(THESIS, 0.0), lesson(THESIS, 1.0)
    assert (first.tasks.tolist(), last.tasks.tolist()) == ([3, 3], [3, 8])
    np.testing.assert_allclose(first.odds, [1, 1, 1])
    np.testing.assert_allclose(last.odds, [1 / 3, 2 / 3, 1])
    assert [between(THESIS.heuristic, done) for done in (0.0, 0.5, 1.0)] == pytest.approx([0.8, 0.45, 0.1])
    assert (BALANCE.bandwidth, replace(BALANCE, preset="thesis", bandwidth=True)) == (False, THESIS)


@pytest.mark.parametrize("settings", [SMALL, ALONE], ids=lambda settings: settings.preset)
def test_torch_and_onnx_runtime_agree(settings: ThesisSettings, tmp_path: Path) -> None:
    import torch

    from ces_core.errors import PolicyError
    from ces_core.policy.thesis_onnx import BANDWIDTH, MAPPING, load_thesis_policy
    from ces_core.policy.thesis_schema import LEVELS, NODES, WIDTH
    from ces_train.thesis_ppo import ThesisTrainer
    from ces_train.thesis_running import export

    trainer = ThesisTrainer(settings, 3)
    trainer.update()
    file = tmp_path / "policy.onnx"
    export(trainer.policy, file, "test-1", {"seed": 3})
    heads = (MAPPING, BANDWIDTH) if settings.bandwidth else (MAPPING,)
    policy = load_thesis_policy(file, *heads)
    assert (policy.version, policy.card) == ("test-1", {"seed": 3})
    states = np.random.default_rng(0).random((7, WIDTH), dtype=np.float32)
    state, mask = torch.from_numpy(states), torch.ones(7, max(NODES, LEVELS), dtype=torch.bool)
    for phase, (head, size) in enumerate(zip(heads, (NODES, LEVELS), strict=False)):
        with torch.no_grad():
            scores = trainer.policy(state, torch.full((7,), phase), mask)[0].numpy()
        np.testing.assert_allclose(policy.scores(head, states), scores[:, :size], atol=1e-4)
    if not settings.bandwidth:
        with pytest.raises(PolicyError, match="does not answer"):
            load_thesis_policy(file, MAPPING, BANDWIDTH)


def test_a_run_leaves_a_policy_that_the_core_takes(tmp_path: Path) -> None:
    from ces_core.policy.thesis_onnx import BANDWIDTH, MAPPING, load_thesis_policy
    from ces_train.running import train
    from ces_train.thesis_running import course

    settings = replace(SMALL, updates=2)
    card = train(course(settings, 1), tmp_path, minutes=None, resume=False, news=lambda *_: None)
    policy = load_thesis_policy(tmp_path / "policy.onnx", MAPPING, BANDWIDTH)
    assert policy.version == card["version"]
    assert policy.card["settings"]["heuristic"] == [0.8, 0.1]
    assert card["scores"]["greedy"].keys() == {"thesis", "tight", "scarce"}
