"""``ces bench placement``: small runs, and what they must say."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ces_core import registry
from ces_core.learned.policy import SHIPPED
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.plan import Metrics, Result
from ces_core.model.problem import Problem
from ces_core.registry import SOLVERS, get_solver
from ces_experiments.common import console, options
from ces_experiments.common.console import ContradictionError
from ces_experiments.common.spread import share, spread
from ces_experiments.placement.comparison import Answer, Question, best_known
from ces_experiments.placement.optima import Truth
from ces_experiments.placement.summary import summarise
from ces_sim.decision import BadDecisionError, decide
from ces_sim.rounds import Round, rounds

SMALL = ("--tasks", "2-3", "--rounds", "2", "--nodes", "5", "--regime", "thesis,scarce", "--no-exact")
TIMES = {"wall_ms", "cpu_ms"}


def bench(*arguments: object, code: int = 0) -> Any:
    app = typer.Typer()
    app.callback()(lambda: None)
    for point in entry_points(group="ces.bench"):
        if point.module.startswith("ces_experiments.placement."):
            app.command(point.name)(point.load())
    run = CliRunner().invoke(app, [str(word) for word in arguments], env={"COLUMNS": "200"})
    assert run.exit_code == code, run.output + repr(run.exception)
    return run


def without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def run(out: Path, *more: object) -> dict[str, Any]:
    bench(
        "placement", *SMALL, "--solvers", "greedy,random", "--time-limit", "0", "--anytime", "", "--out", out, *more
    )  # fmt: skip
    return json.loads((out / "results.json").read_text())


def test_same_seed_same_figures(tmp_path: Path) -> None:
    first, again = run(tmp_path / "a", "--no-plots"), run(tmp_path / "b", "--no-plots")
    assert without_times(first["regimes"]) == without_times(again["regimes"])
    assert first["question"] == again["question"]
    other = run(tmp_path / "c", "--no-plots", "--seed", "43")
    assert without_times(first["regimes"]) != without_times(other["regimes"])
    assert "times their CPU time" in (tmp_path / "a" / "tables.md").read_text()
    assert {"command", "commit", "cpu", "cores", "python", "packages", "date"} <= set(first["machine"])
    rows = list(csv.DictReader((tmp_path / "a" / "decisions.csv").open()))
    assert len(rows) == 2 * 2 * 2 * 2
    assert {row["solver"] for row in rows} == {"greedy", "random"}


def test_tables_and_plots_have_everything(tmp_path: Path) -> None:
    shown = bench(
        "placement", *SMALL, "--solvers", "greedy,random", "--anytime", "0.01", "--out", tmp_path
    ).stdout  # fmt: skip
    page = (tmp_path / "tables.md").read_text()
    for text in (shown, page):
        assert text.count("Regime ") == 2
        for name in ("greedy", "random", "best known"):
            assert text.count(f"{name} ") >= 2
    for name in ("summary.png", "by-tasks.png", "over-time.png"):
        assert name in shown
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    found = json.loads((tmp_path / "results.json").read_text())["regimes"]["thesis"]["anytime"]["greedy"]
    assert [point["limit_s"] for point in found] == [0.005, 0.01]
    assert all(point["wall_ms"]["n"] == 4 for point in found)


def test_optima_are_proven_in_other_processes(tmp_path: Path) -> None:
    words = ("--tasks", "2", "--rounds", "1", "--nodes", "4", "--regime", "thesis", "--solvers", "greedy", "--no-plots")
    bench("placement", *words, "--exact", "--anytime", "", "--time-limit", "0", "--out", tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())["regimes"]["thesis"]
    assert (found["proven_optima"], found["proven_impossible"]) == (1, 0)
    assert found["solvers"]["greedy"]["all_tasks"]["optimal"]["n"] == 1
    (row,) = csv.DictReader((tmp_path / "decisions.csv").open())
    assert float(row["composite"]) <= float(row["optimum"]) + 1e-6
    assert float(row["bound"]) == pytest.approx(float(row["optimum"]), abs=1e-6)
    assert row["proven_impossible"] == "False"


def test_a_policy_of_ones_own_is_compared_beside_the_shipped_one(tmp_path: Path) -> None:
    mine = tmp_path / "mine.onnx"
    mine.write_bytes(SHIPPED.read_bytes())
    small = ("--tasks", "2", "--rounds", "1", "--nodes", "4", "--regime", "tight", "--no-exact", "--anytime", "")
    words = (*small, "--no-plots", "--time-limit", "0", "--policy", mine)
    bench("placement", *words, "--solvers", "greedy,imitation", "--out", tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["question"]["solvers"] == ["greedy", "imitation", "imitation with mine.onnx"]
    shipped, own = (found["regimes"]["tight"]["solvers"][name] for name in found["question"]["solvers"][1:])
    assert own["all_tasks"]["composite"] == shipped["all_tasks"]["composite"]
    refused = bench("placement", *words, "--solvers", "greedy", "--out", tmp_path / "none", code=2).stderr
    assert "--policy" in refused
    mine.write_text("no policy")
    assert "--policy" in bench("placement", *words, "--solvers", "imitation", "--out", tmp_path / "none", code=2).stderr
    assert not (tmp_path / "none").exists()


def test_many_solvers_get_a_panel_each(tmp_path: Path) -> None:
    many = sorted(SOLVERS.keys() - {"default", "exact"})[:8]
    bench(
        "placement", "--tasks", "2", "--rounds", "1", "--nodes", "4", "--regime", "tight", "--no-exact",
        "--solvers", ",".join(many), "--anytime", "", "--out", tmp_path,
    )  # fmt: skip
    assert (tmp_path / "composite-by-tasks.png").exists()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--solvers", "greedy,magic", "magic"),
        ("--solvers", "greedy,", "empty"),
        ("--regime", "loose", "loose"),
        ("--tasks", "8-3", "8-3"),
        ("--tasks", "0", "0"),
        ("--tasks", "many", "many"),
        ("--anytime", "0.1,-1", "-1"),
        ("--rounds", "0", "1"),
        ("--nodes", "0", "1"),
    ],
)
def test_bad_options_are_named(option: str, value: str, said: str, tmp_path: Path) -> None:
    wrong = bench("placement", option, value, "--out", tmp_path / "out", code=2)
    assert option in wrong.stderr
    assert said in wrong.stderr
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "--out" in bench("placement", *SMALL, "--out", tmp_path / "file" / "out", code=2).stderr


def test_without_matplotlib_the_remedy_is_named_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "find_spec", lambda name: None)
    said = " ".join(bench("placement", *SMALL, "--out", tmp_path / "out", code=2).stderr.split())
    assert "pip install matplotlib" in said
    assert "--no-plots" in said
    assert not (tmp_path / "out").exists()


class Cheat:
    """Says the best of metrics for whatever greedy found."""

    name = "cheat"
    summary = "lies"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        return replace(get_solver("greedy").solve(problem, seed=seed), metrics=Metrics(0.0, 1.0, 1.0))


def test_a_broken_plan_ends_the_benchmark_loudly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (registry, options):
        monkeypatch.setattr(module, "available", lambda: {**SOLVERS, "cheat": Cheat()})
    broken = bench("placement", *SMALL, "--solvers", "cheat", "--out", tmp_path, code=1)
    assert "solver cheat broke" in broken.stderr
    assert not (tmp_path / "results.json").exists()
    told = json.loads((tmp_path / "broken.json").read_text())
    assert told["instance"]["nodes"]
    assert told["answer"]["metrics"]["composite"] == 1.0


class Crash(Cheat):
    name = "crash"

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        raise ZeroDivisionError("nothing left")


def test_a_solver_that_fails_is_named_with_its_instance(tmp_path: Path) -> None:
    instance = random_instance("thesis", 1, nodes=3, tasks=2)
    with pytest.raises(BadDecisionError, match="solver crash failed: ZeroDivisionError: nothing left") as caught:
        decide(Crash(), read_instance(instance), instance)
    assert caught.value.instance is instance
    assert caught.value.answer is None


def answer(asked: Round, solver: str, composite: float | None) -> Answer:
    parts = (None, None) if composite is None else (0.1, 0.9)
    return Answer(asked, solver, None, composite, *parts, None if composite is not None else "packing", 1.0, 1.0)


def test_no_solver_gains_by_refusing() -> None:
    easy, hard = rounds(["tight"], [3], 2, 1)
    question = Question(("tight",), (3,), 2, 1, ("keen", "coy"), None, 10, "random", ())
    answers = [
        answer(easy, "keen", 0.9),
        answer(hard, "keen", 0.5),
        answer(easy, "coy", 0.9),
        answer(hard, "coy", None),
    ]
    truths = {easy: Truth(0.92, 0.92), hard: Truth(0.5, 0.6)}
    best = best_known(answers, truths)
    found = summarise(question, answers, truths, best)["regimes"]["tight"]
    keen, coy = (found["solvers"][name]["all_tasks"] for name in ("keen", "coy"))
    assert (keen["composite"]["mean"], coy["composite"]["mean"]) == (pytest.approx(0.7), pytest.approx(0.9))
    assert (keen["composite_or_0"]["mean"], coy["composite_or_0"]["mean"]) == (pytest.approx(0.7), pytest.approx(0.45))
    assert keen["composite_where_all_placed"] == coy["composite_where_all_placed"] == spread([0.9])
    assert keen["regret"] == pytest.approx(spread([0.02, 0.0]))
    assert coy["placed"] == share(1, 2)
    assert keen["optimal"] == share(0, 1)
    assert (found["proven_optima"], found["placed_by_all"], found["placed_by_somebody"]) == (1, 1, 2)
    assert found["solvers"]["coy"]["refused_for"] == {"packing": 1}


def test_answers_and_proofs_must_agree() -> None:
    (asked,) = rounds(["thesis"], [3], 1, 1)
    assert best_known([answer(asked, "a", 0.9)], {asked: Truth(0.8, 0.9)}) == {asked: 0.9}
    with pytest.raises(ContradictionError, match=r"above 0\.8"):
        best_known([answer(asked, "a", 0.9)], {asked: Truth(0.8, 0.8)})
    with pytest.raises(ContradictionError, match="there is none"):
        best_known([answer(asked, "a", 0.9)], {asked: Truth(impossible=True)})


def test_rounds_are_the_same_in_all_regimes_but_for_link_capacities() -> None:
    drawn = list(rounds(["thesis", "scarce"], [3, 4], 2, 42, nodes=6))
    assert len({each.seed for each in drawn}) == 4
    wide, narrow = (next(each.instance() for each in drawn if each.regime == regime) for regime in ("thesis", "scarce"))
    assert wide["nodes"] == narrow["nodes"]
    assert wide["job"]["tasks"] == narrow["job"]["tasks"]
    assert wide == random_instance("thesis", drawn[0].seed, nodes=6, tasks=3)
    ratios = {round(b["bandwidth"] / a["bandwidth"], 2) for a, b in zip(wide["links"], narrow["links"], strict=True)}
    assert ratios == {0.15}


def test_rounds_have_the_degree_that_is_asked_for() -> None:
    (usual,), (sparse,) = (rounds(["thesis"], [3], 1, 42, nodes=80, degree=degree) for degree in (None, 4.0))
    assert usual.instance() == random_instance("thesis", usual.seed, nodes=80, tasks=3)
    assert len(sparse.instance()["links"]) / 80 == pytest.approx(4.0, rel=0.2)
    assert len(usual.instance()["links"]) / 80 > 15.0


def test_spreads() -> None:
    assert spread([]) == {"n": 0}
    assert spread([2.0]) == {"n": 1, "mean": 2, "std": 0, "min": 2, "p50": 2, "p99": 2, "max": 2}
    found = spread([1.0, 2.0, 3.0])
    assert (found["mean"], found["std"], found["p50"]) == (2, 1, 2)
    assert share(0, 0) == {"n": 0}
    # Wilson's interval for 8 of 10, from its closed form.
    assert share(8, 10) == {"n": 10, "mean": 0.8, "low": pytest.approx(0.4902, abs=1e-4),
                            "high": pytest.approx(0.9433, abs=1e-4)}  # fmt: skip
