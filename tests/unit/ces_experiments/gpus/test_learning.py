"""``ces bench gpu-learning`` on a small trace of our own, for the shortest of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_tasks import bench, write_trace

from ces_experiments.gpus import commands, learning, trace, variants
from ces_experiments.gpus.variants import STUDIES, VARIANTS, Variant
from ces_rl.run import Run

pytestmark = pytest.mark.needs("torch")


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path / "data", nodes=140, pods=350)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))
    for kept in (trace.nodes, trace.tasks):
        kept.cache_clear()


def test_a_study_with_its_rules_tables_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {
        "counting, D1": Variant("ppo", {"problems": 2}, variants.COUNT),
        "counting, D2": Variant("ppo", {"problems": 2}, {**variants.COUNT, "scenario": "D2"}),
    }
    monkeypatch.setattr(learning, "VARIANTS", short)
    monkeypatch.setattr(learning, "STUDIES", STUDIES | {"counting": tuple(short)})
    out, keep = tmp_path / "out", tmp_path / "keep"
    arguments = ("--studies", "counting", "--episodes", 1, "--seeds", 1, "--draws", 1, "--keep", keep, "--out", out)
    shown = bench(commands.gpu_learning, *arguments).stdout
    found = json.loads((out / "results.json").read_text())
    assert set(found["rules"]) == {"D1", "D2"}
    for name in short:
        (run,) = found["variants"][name]["runs"]
        assert run["episodes"] == 2
        assert run["figures"]["deployed"]["mean"] == run["figures"]["placed"][0]
        assert run["figures"]["wrong"]["mean"] <= 220 - run["figures"]["placed"][0]
    assert "Counting: means over 1 draws that were not learned from" in shown
    assert (out / "learning.png").read_bytes().startswith(b"\x89PNG")
    assert (keep / "counting-D1-0" / "policy.onnx").is_file()


def test_every_study_is_of_variants_that_can_be_made(tmp_path: Path) -> None:
    assert {name for study in STUDIES.values() for name in study} == set(VARIANTS)
    for name, variant in VARIANTS.items():
        if not name.endswith("D5"):  # too few tasks in the small trace
            made = Run.make(variant.algorithm, "gpu-clusters", 0, variant.settings_for(1), variant.env, tmp_path)
            assert made.algorithm.settings.updates == 1, name


def test_an_unknown_study_is_refused(tmp_path: Path) -> None:
    shown = bench(commands.gpu_learning, "--studies", "best", "--out", tmp_path / "out", code=2).output
    assert "'best' is none of algorithms" in " ".join(shown.replace("│", " ").split())
