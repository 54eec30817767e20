"""``ces bench gpu-clusters`` on a small trace of our own, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_tasks import bench, write_trace

from ces_experiments.common.console import ContradictionError
from ces_experiments.gpus import clusters, commands, trace
from ces_experiments.gpus.clusters import CONTENDERS, PLAN, Cell, decided


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path / "data", nodes=140, pods=350)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))
    for kept in (trace.nodes, trace.tasks, clusters._drawn):
        kept.cache_clear()


def test_all_contenders_and_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = bench(commands.gpu_clusters, "--scenarios", "D1", "--seeds", 1, "--rounds", 1, "--out", out).stdout
    (found,) = json.loads((out / "results.json").read_text())["scenarios"].values()
    assert set(found["contenders"]) == {*CONTENDERS, PLAN}
    placed = {who: each["deployed"]["mean"] for who, each in found["contenders"].items()}
    assert max(placed.values()) <= found["bound"]["mean"]
    assert placed["expert"] > placed["random-blind"]
    assert found["contenders"]["expert"]["wrong"]["mean"] == 0
    assert "Tasks placed, mean of 1 draws" in shown
    assert (out / "placed.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "draws.csv").read_text().startswith("scenario,seed,who,bound,deployed\nD1,0,random,")


def test_nobody_may_be_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "by_rule", lambda *_: {"deployed": 221})
    with pytest.raises(ContradictionError, match=r"D1, seed 3: greedy placed 221, the bound is \d+"):
        decided(Cell("D1", 3, ("greedy",), 0))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scenarios", "D6"), "'D6' is none of D1, D2"),
        (("--contenders", "best"), "'best' is none of random"),
        (("--scenarios", "D5"), "D5 needs 280 tasks"),
    ],
)
def test_what_is_not_there_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    shown = bench(commands.gpu_clusters, *arguments, "--out", tmp_path / "out", code=2).output
    assert said in " ".join(shown.replace("│", " ").split())
