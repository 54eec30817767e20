"""Learning start plans and how tasks are placed again: the same by seed, better than it began, and read again."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ces_core.learned.start.weights import load_weights
from ces_rl.run import Run, train

SETTINGS = {"updates": 8, "draws": 12, "evaluate_every": 8}
FEW = {"kinds": (("scarce", 10, None, 12),), "recreate_kinds": (("tight", 20, 8, 6),)}


def test_the_same_seed_learns_the_same_and_gains(tmp_path: Path) -> None:
    heard: list[float] = []
    cards = [
        train(
            Run.make("cem", "start-weights", seed, SETTINGS, FEW, tmp_path / str(run)),
            news=lambda _, __, measured: heard.append(measured["fitness"]),
        )
        for run, seed in enumerate((1, 1, 2))
    ]
    first, again, other = (load_weights(tmp_path / str(run) / "proposals.json") for run in range(3))
    changing = {"seconds", "commit"}
    assert {k: v for k, v in cards[0].items() if k not in changing} == {
        k: v for k, v in cards[1].items() if k not in changing
    }
    assert (first.dive == again.dive).all()
    assert (first.dive != other.dive).any()
    assert np.isfinite(first.centre).all()
    assert (first.remake == again.remake).all()
    assert (first.remake != other.remake).any()
    assert len(heard) == 3 * SETTINGS["updates"]
    assert heard[3] > heard[0]
    assert cards[0]["scores"]["recreated"]["tight, 20 nodes"]["gain"] > 0
    assert cards[0]["before learning"].keys() == {"what", "start plan", "recreated"}
    assert first.card["seed"] == 1
    rows = list(csv.DictReader((tmp_path / "0" / "log.csv").open(newline="")))
    assert len(rows) == 1 + SETTINGS["updates"]


def test_a_search_goes_on_where_it_was_left(tmp_path: Path) -> None:
    """Amid the first objective, at its end, and amid the second."""

    def make(folder: str) -> Run:
        return Run.make("cem", "start-weights", 1, SETTINGS | {"updates": 4}, FEW, tmp_path / folder)

    whole = make("whole").algorithm
    for _ in range(4):
        whole.update()
    for after in (1, 2, 3):
        first, rest = make("part"), make("part")
        first.folder.mkdir(exist_ok=True)
        for _ in range(after):
            first.algorithm.update()
        first.save()
        rest.restore()
        for _ in range(4 - after):
            rest.algorithm.update()
        for mine, others in zip(rest.algorithm.solution, whole.solution, strict=True):
            np.testing.assert_array_equal(mine, others)
