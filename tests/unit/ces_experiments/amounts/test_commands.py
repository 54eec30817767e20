"""``ces bench amounts``: a small run, and what it must say."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from bench_command import run_bench

from ces_core.amounts.settings import SETTINGS
from ces_experiments.amounts import commands
from ces_experiments.amounts.experiment import paired, summarise
from ces_sim.amounts import Outcome

SMALL = ("--settings", "synthetic", "--rules", "least,thrifty", "--policies", "", "--rounds", "3")


bench = partial(run_bench, commands.amounts)


def test_the_same_seed_gives_the_same_figures_and_the_published_ones_stand_beside(tmp_path: Path) -> None:
    found = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        bench(*SMALL, "--no-plots", "--seed", seed, "--out", tmp_path / folder)
        found.append(json.loads((tmp_path / folder / "results.json").read_text())["settings"])
    assert found[0] == found[1] != found[2]
    players = found[0]["synthetic"]["players"]
    assert players["thrifty"]["jct"]["mean"] < players["least"]["jct"]["mean"]
    assert players["least"]["published"]["slots"] == 12.7448
    assert players["thrifty"]["published"]["slots"] is None
    assert players["least"]["gpu_slots"]["n"] == 3
    tables = (tmp_path / "a" / "tables.md").read_text()
    assert "| synthetic, least |" in tables


def test_plots_are_drawn(tmp_path: Path) -> None:
    bench(*SMALL, "--out", tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"jct.png", "done.png"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--settings", "hetero_7"), "--settings"),
        (("--rules", "fifo"), "--rules"),
        (("--policies", "nowhere"), "--policies"),
        (("--rounds", "1"), "--rounds"),
    ],
)
def test_what_cannot_be_asked_is_named(arguments: tuple[str, str], named: str) -> None:
    assert named in bench(*arguments, code=2).output


def test_learned_policies_are_compared_world_by_world() -> None:
    def outcome(*means: float) -> Outcome:
        durations = np.array([[mean] for mean in means])
        return Outcome(durations, np.full(3, 10), np.full((3, 2), 0.5), np.ones(3))

    found = summarise(SETTINGS["synthetic"], {"optimus": outcome(5, 9, 7), "tapfinger": outcome(4, 8, 6)})
    assert found["against"]["tapfinger"]["optimus"]["mean"] == -1.0
    assert found["against"]["tapfinger"]["optimus"]["high"] == -1.0
    assert found["players"]["tapfinger"]["published"]["slots"] == 6.4167
    # 0.5 of 48 GPUs for 10 slots, by 192 tasks.
    assert found["players"]["optimus"]["gpu_slots"]["mean"] == pytest.approx(0.5 * 48 * 10 / 192)


def test_the_interval_is_that_of_students_t() -> None:
    found = paired(np.array([1.0, 2.0, 3.0]))
    assert found["low"] == pytest.approx(2.0 - 4.302653 / np.sqrt(3))
    assert found["high"] == pytest.approx(2.0 + 4.302653 / np.sqrt(3))
