"""``ces bench gpus`` on a small trace of our own, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_tasks import bench, write_trace

from ces_core.gpus.scores import POLICIES
from ces_experiments.gpus import commands, trace
from ces_experiments.gpus.fgd import misses
from ces_experiments.gpus.published import ALLOCATED, AT


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path / "data", nodes=40)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))
    trace.nodes.cache_clear()
    trace.tasks.cache_clear()


def test_all_policies_and_a_picture(tmp_path: Path) -> None:
    shown = bench(commands.gpus, "--seeds", 2, "--out", tmp_path / "out").stdout
    (found,) = json.loads((tmp_path / "out" / "results.json").read_text())["lists"].values()
    assert set(found) == set(POLICIES)
    for policy in found.values():
        assert policy["allocated"]["130"]["n"] == 2
        assert 50 < policy["allocated"]["80"]["mean"] <= policy["allocated"]["130"]["mean"] <= 100
    assert found["fgd"]["allocated"]["130"]["mean"] >= found["random"]["allocated"]["130"]["mean"]
    assert "mean of 2 seeds" in shown
    assert (tmp_path / "out" / "allocated.png").read_bytes().startswith(b"\x89PNG")


def test_figures_far_from_those_published_are_bad_news(tmp_path: Path) -> None:
    run = bench(commands.gpus, "--policies", "fgd", "--out", tmp_path / "out", "--no-plots", code=1)
    assert "further from the published figures than 0.6 points: default fgd at " in run.output


def test_only_means_beyond_the_tolerance_are_missed() -> None:
    known = dict(zip(map(str, AT), ALLOCATED["default"]["fgd"], strict=True))
    found = {"allocated": {load: {"mean": value + 0.5} for load, value in known.items()}, "published": known}
    assert misses("default", {"fgd": found}) == []
    found["allocated"]["90"] = {"mean": known["90"] - 0.7}
    assert misses("default", {"fgd": found}) == ["default fgd at 90 %: 89.28 for 89.98"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--lists", "other"), "'other' is none of default"), (("--policies", "best"), "'best' is none of random"),
     (("--seeds", "0"), "--seeds")],
)  # fmt: skip
def test_what_is_not_there_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    shown = bench(commands.gpus, *arguments, "--out", tmp_path / "out", code=2).output
    assert said in " ".join(shown.replace("│", " ").split())


def test_without_data_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CES_DATA_DIR")
    assert "CES_DATA_DIR" in bench(commands.gpus, "--out", tmp_path / "out", code=2).output
