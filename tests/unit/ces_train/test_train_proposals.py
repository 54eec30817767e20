"""Learning first plans and how to place tasks anew: the same by seed, better than it began, written as it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ces_core.proposals.weights import load_weights
from ces_train.proposals import FILE, Settings, train

FEW = Settings(generations=4, draws=12, kinds=(("scarce", 10, None, 12),), remade_kinds=(("tight", 20, 8, 6),))


def test_the_same_seed_learns_the_same_and_gains(tmp_path: Path) -> None:
    heard: list[float] = []
    cards = [
        train(FEW, seed, tmp_path / str(run), lambda _, gains: heard.append(float(gains.mean())))
        for run, seed in enumerate((1, 1, 2))
    ]
    first, again, other = (load_weights(tmp_path / str(run) / FILE) for run in range(3))
    assert cards[0] == cards[1]
    assert (first.dive == again.dive).all()
    assert (first.dive != other.dive).any()
    assert np.isfinite(first.centre).all()
    assert (first.remake == again.remake).all()
    assert (first.remake != other.remake).any()
    assert len(heard) == 3 * 2 * FEW.generations
    assert heard[FEW.generations - 1] > heard[0]
    assert cards[0]["gain of remaking it"]["tight, 20 nodes"] > 0
    assert first.card["seed"] == 1
