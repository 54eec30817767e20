"""``ces bench encoders``: a small run, and what is told of runs that are made up."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ces_experiments.learned import commands, encoders_report

pytestmark = pytest.mark.needs("torch")

SMALL = (
    "--nodes", "6", "--degree", "2.5", "--regime", "tight", "--tasks", "3", "--updates", "2", "--episodes", "4",
    "--gradient-steps", "3", "--limit", "30", "--problems", "12", "--validation", "3", "--draws", "2", "--every", "1",
    "--runs", "2", "--seed", "3",
)  # fmt: skip
ONCE: dict[str, Any] = {
    "nodes": 5, "degree": 2.0, "regimes": ("tight",), "tasks": (3,), "updates": 1, "episodes": 1, "neighbours": 4,
    "gradient_steps": 1, "limit": 1, "problems": 1, "validation": 1, "draws": 1, "every": 1, "runs": 1, "seed": 1,
    "shares": (0.5,),
}  # fmt: skip
"""The least that may be asked."""


def bench(*arguments: object, code: int = 0) -> Any:
    app = typer.Typer()
    app.command()(commands.encoders)
    run = CliRunner().invoke(app, [str(word) for word in arguments])
    assert run.exit_code == code, run.output + repr(run.exception)
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With everything that a run writes."""
    folder = tmp_path_factory.mktemp("encoders")
    assert "of 13" in bench(*SMALL, "--out", folder).stderr
    return folder


def without_times(results: dict[str, Any]) -> Any:
    runs = [{key: value for key, value in run.items() if key != "cpu_s"} for run in results["runs"]]
    return runs, results["curves"], results["differences"], results["reached"], results["rule"]


def test_same_seed_same_curves(folder: Path, tmp_path: Path) -> None:
    bench(*SMALL, "--no-plots", "--out", tmp_path)
    one, other = (json.loads((each / "results.json").read_text()) for each in (folder, tmp_path))
    assert without_times(one) == without_times(other)


def test_both_encoders_have_the_same_lessons_and_begin_alike(folder: Path) -> None:
    found = json.loads((folder / "results.json").read_text())
    runs = {(run["encoder"], run["seed"]): run["points"] for run in found["runs"]}
    assert set(runs) == {(encoder, seed) for encoder in ("pooled", "graph") for seed in (3, 4)}
    for seed in (3, 4):
        pooled, graph = runs["pooled", seed], runs["graph", seed]
        assert [point["updates"] for point in pooled] == [point["updates"] for point in graph] == [0, 1, 2]
        assert pooled[0] == graph[0]
        assert pooled[0]["steps"] == 0 < pooled[1]["steps"] < pooled[2]["steps"]
    assert found["networks"]["graph"]["parameters"] > found["networks"]["pooled"]["parameters"]


def test_tables_raw_data_and_picture_are_written(folder: Path) -> None:
    assert (folder / "encoders.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "tables.md").read_text()
    for row in ("look-ahead rule", "pooled, before learning", "graph, in the end", "best of draws, 0.5 of what it is"):
        assert f"| {row}" in page
    with (folder / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3 * 2 * 2  # encoders, seeds, marks, ways, and all beside one regime
    assert {row["instances"] for row in rows} == {"all", "tight"}


def test_training_meets_no_held_out_instance() -> None:
    from ces_experiments.learned.encoders import Question
    from ces_rl.problems.data import TOPOLOGY_SEED
    from ces_rl.problems.validation import FIRST_SEED

    assert TOPOLOGY_SEED + 100_000 <= FIRST_SEED  # as many as --problems may be
    few = ONCE | {"regimes": ("tight", "scarce"), "tasks": (3, 4), "validation": 9}
    question = Question(**few | {"problems": 200})
    pool = question.lessons()
    assert len(pool.sizes) == 200
    assert sorted(set(pool.sizes[:, 0].tolist())) == [3, 4]
    crowded = few | {"nodes": 2, "tasks": (40,), "regimes": ("scarce",)}
    with pytest.raises(typer.BadParameter, match="no instance of scarce has a place"):
        Question(**crowded).held_out()


def point(steps: int, regret: float) -> dict[str, Any]:
    ways = ("best node", "best of draws")
    return {
        "updates": steps, "steps": steps, "regret": {way: {"all": regret} for way in ways},
        "solved": {way: {"all": 1.0} for way in ways},
    }  # fmt: skip


def test_decisions_to_a_regret_are_between_marks_and_may_never_come() -> None:
    from ces_experiments.learned.encoders import decisions_to, over_run

    points = [point(0, 0.08), point(100, 0.04), point(200, 0.06), point(300, 0.02)]
    assert decisions_to(points, "best node", 0.06) == pytest.approx(50)
    assert decisions_to(points, "best node", 0.03) == pytest.approx(275)
    assert decisions_to(points, "best node", 0.08) == 0
    assert decisions_to(points, "best node", 0.01) is None
    assert over_run(points, "best node", "all") == pytest.approx((0.06 + 0.05 + 0.04) / 3)


def test_encoders_are_compared_seed_by_seed() -> None:
    from ces_experiments.learned.encoders import Question, summarise

    question = Question(**ONCE | {"runs": 2})
    runs = [
        {"encoder": "pooled", "seed": 1, "cpu_s": 60.0, "points": [point(0, 0.08), point(100, 0.02)]},
        {"encoder": "graph", "seed": 1, "cpu_s": 60.0, "points": [point(0, 0.08), point(100, 0.0)]},
        {"encoder": "graph", "seed": 2, "cpu_s": 60.0, "points": [point(0, 0.08), point(80, 0.03)]},
        {"encoder": "pooled", "seed": 2, "cpu_s": 60.0, "points": [point(0, 0.08), point(80, 0.05)]},
    ]
    found = summarise(question, runs)
    last = found["differences"]["best node"]["all"]["last"]
    assert (last["gain"]["mean"], last["gain"]["n"], last["less"]) == (pytest.approx(-0.02), 2, 2)
    reached = found["reached"]["best of draws"]["0.5"]
    assert reached["regret"] == pytest.approx(0.04)
    assert {encoder: each["n"] for encoder, each in reached["decisions"].items()} == {"pooled": 1, "graph": 2}
    assert (reached["gain"]["n"], reached["gain"]["mean"]) == (1, pytest.approx(50 - 200 / 3))
    networks = {encoder: {"parameters": 10, "asked_ms": 1.0} for encoder in ("pooled", "graph")}
    rule = {what: {way: {"all": 0.5} for way in found["reached"]} for what in ("regret", "solved")}
    told = {"question": vars(question), "runs": runs, "networks": networks, "rule": rule} | found
    worth, decisions, differences, costs = (grid.rows for grid in encoders_report.tables(told))
    assert worth[0][:3] == ["look-ahead rule", "0.5000", "0.5000"]
    assert decisions[0][2:] == ["67 (1 of 2)", "57 ± 10 (2 of 2)", "-17", "1 of 1"]
    assert differences[0][1:3] == ["-0.02000 ± 0.00000", "2 of 2"]
    assert costs[1] == ["graph", "10", "1.00", "90", "1.0"]
