"""``ces bench gpu-mix`` on a small trace of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_tasks import bench, write_trace

from ces_experiments.gpus import commands, trace
from ces_experiments.gpus.mix import CONTENDERS, NOTHING


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path / "data", nodes=40)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))
    trace.nodes.cache_clear()
    trace.tasks.cache_clear()


def test_all_place_the_same_load_and_gains_are_of_pairs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("--loads", 1, "--hosts", 3, "--stays", 3, "--solver", "greedy", "--seeds", 2, "--out", out)
    shown = bench(commands.gpu_mix, *asked).stdout
    (found,) = json.loads((out / "results.json").read_text())["loads"]
    assert tuple(found["contenders"]) == CONTENDERS
    first = found["contenders"][NOTHING]
    for who, figures in found["contenders"].items():
        assert figures["visits"]["mean"] == first["visits"]["mean"]
        assert 0 < figures["milli"]["mean"] <= 1
        more = figures["milli"]["mean"] - first["milli"]["mean"]
        assert figures["gain"]["milli"]["mean"] == pytest.approx(more, abs=1e-4), who
        if who.startswith("weight "):
            assert more == pytest.approx(0, abs=1e-9), "greedy does not look at what is left over"
    assert "mean of 2 draws" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--solver", "nobody"), "'nobody' is none of"), (("--loads", "0"), "'0' is no number above 0")],
)
def test_what_is_not_there_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    shown = bench(commands.gpu_mix, *arguments, "--out", tmp_path / "out", code=2).output
    assert said in " ".join(shown.replace("│", " ").split())
