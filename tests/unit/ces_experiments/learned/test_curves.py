"""``ces bench curves``: small runs, and what they must say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ces_client.cli.app import app
from ces_experiments.learned import curves_report

pytestmark = pytest.mark.needs("torch")


def run(out: Path, *more: object) -> dict[str, Any]:
    """Both kinds of run, each within a moment."""
    from ces_experiments.learned import curves

    few = {name: replace(each, width=8) for name, each in curves.VARIANTS.items()}
    words = ["bench", "curves", "--updates", 1, "--runs", 1, "--every", 1, "--validation", 2, "--out", out, *more]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curves, "VARIANTS", few)
        patch.setattr(curves, "TRAINING", replace(curves.TRAINING, problems=8, minibatch_size=64))
        answer = CliRunner().invoke(app, [str(word) for word in words])
    assert answer.exit_code == 0, answer.output + repr(answer.exception)
    return json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With everything that a run writes."""
    folder = tmp_path_factory.mktemp("curves")
    run(folder)
    return folder


def without_times(results: dict[str, Any]) -> Any:
    runs = [(name, each["seed"], each["points"]) for name, kind in results["variants"].items() for each in kind["runs"]]
    return results["question"], results["curves"], results["gain"], runs


def test_same_seed_same_curves(folder: Path, tmp_path: Path) -> None:
    found = json.loads((folder / "results.json").read_text())
    assert without_times(found) == without_times(run(tmp_path, "--no-plots"))
    assert {"command", "commit", "cpu", "cores", "date"} <= set(found["machine"])


def test_kinds_of_run_differ_in_the_heuristic_reward_alone(folder: Path) -> None:
    one, other = json.loads((folder / "results.json").read_text())["variants"].values()
    assert one["settings"]["heuristic"] == [0.8, 0.1]
    assert other["settings"] == one["settings"] | {"heuristic": [0, 0]}
    for mine, yours in zip(one["runs"], other["runs"], strict=True):
        assert mine["seed"] == yours["seed"]
        assert [point["updates"] for point in mine["points"]] == [0, 1]
        assert mine["points"][0] == yours["points"][0]
        assert mine["points"][1]["steps"] == yours["points"][1]["steps"] > 0


def test_tables_and_plot_are_written(folder: Path) -> None:
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "tables.md").read_text()
    assert all(f"| {regime}, without |" in page for regime in ("thesis", "tight", "scarce"))


def test_curves_are_over_seeds_and_the_gain_is_seed_by_seed() -> None:
    from ces_experiments.learned.curves import summarise

    def variant(*ends: float | None) -> dict[str, Any]:
        points = ([0.1, end] for end in ends)
        return {
            "runs": [
                {"points": [{"regimes": {"tight": {"composite": value}}} for value in values]} for values in points
            ]
        }

    found = summarise({"with": variant(0.5, 0.9, None), "without": variant(0.4, 0.6, 0.7)})
    start, end = found["curves"]["with"]["tight"]["composite"]
    assert (start["n"], start["mean"], start["std"]) == (3, pytest.approx(0.1), pytest.approx(0.0))
    assert (end["n"], end["mean"]) == (2, pytest.approx(0.7))
    gain = found["gain"]["tight"]["composite"]
    assert (gain["n"], gain["min"], gain["max"]) == (2, pytest.approx(0.1), pytest.approx(0.3))
    assert curves_report.gain(gain) == "+0.2000, +0.1000 to +0.3000"
