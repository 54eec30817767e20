"""``ces bench thesis``, ``quality``, ``generalise`` and ``pareto``: small runs, and what they must say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_command import run_bench
from click.testing import Result

from ces_core.checker import check
from ces_core.model.instance import read_instance
from ces_core.registry import get_solver
from ces_experiments.common import options
from ces_experiments.common.plots import spaced
from ces_experiments.learned import commands
from ces_experiments.learned.pareto import Question, Weighed, summarise
from ces_experiments.placement.comparison import Answer

TIMES = {"wall_ms", "cpu_ms"}
FAST = ("--solvers", "first-fit-decreasing,random")
SMALL: Mapping[str, tuple[str, ...]] = {
    "thesis": (*FAST, "--tasks", "2-3", "--rounds", "2", "--regime", "thesis,scarce", "--no-exact"),
    "quality": (*FAST, "--tasks", "2-3", "--rounds", "2", "--regime", "thesis,scarce", "--no-exact"),
    "generalise": (*FAST, "--nodes", "5,8", "--topologies", "", "--tasks", "2-3", "--rounds", "2", "--no-exact"),
    "pareto": (*FAST[:1], "first-fit-decreasing,smart+fill", "--tasks", "3", "--rounds", "3", "--balance", "0.3,0.9"),
}
each_experiment = pytest.mark.parametrize("name", SMALL)
GRAPHML = """<graphml><key id="s" for="edge" attr.name="LinkSpeedRaw" attr.type="double"/>
<graph edgedefault="undirected"><node id="0"/><node id="1"/><node id="2"/>
<edge source="0" target="1"><data key="s">1e9</data></edge>
<edge source="1" target="2"><data key="s">1e9</data></edge></graph></graphml>"""


def bench(name: str, *arguments: object, code: int = 0) -> Result:
    return run_bench(getattr(commands, name.replace("-", "_")), *arguments, code=code)


def without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def results(out: Path) -> Any:
    return json.loads((out / "results.json").read_text())


@each_experiment
def test_same_seed_same_figures(name: str, tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        bench(name, *SMALL[name], "--no-plots", "--seed", seed, "--out", tmp_path / folder)
    first, again, other = (without_times(results(tmp_path / folder)) for folder in "abc")
    assert first["regimes"] == again["regimes"]
    assert first["question"] == again["question"]
    assert first["regimes"] != other["regimes"]
    assert first["benchmark"] == name
    assert {"command", "commit", "cpu", "cores", "date"} <= set(first["machine"])


def test_a_warm_start_is_compared_job_by_job_on_new_and_on_known_paths(tmp_path: Path) -> None:
    small = ("--cases", "5:2-3,120:4", "--regime", "tight", "--rounds", "2", "--time-limits", "0.5", "--long", "0.1")
    warm = ("--base", "first-fit-decreasing", "--other", "greedy")
    shown = bench("warm-start", *small, *warm, "--out", tmp_path).stdout
    assert "120 nodes, 4 tasks" in shown
    cells = results(tmp_path)["cases"]["5 nodes, 2-3 tasks"]["tight"]["500"]
    assert set(cells) == {"new", "known"}
    for cell in cells.values():
        both = cell["solvers"]
        assert both["greedy"]["placed"]["n"] == 4
        lower, higher = (both[name]["regret"]["mean"] for name in ("greedy", "first-fit-decreasing"))
        assert cell["gain"]["mean"] == pytest.approx(higher - lower, abs=1e-5)
        assert higher > lower >= 0
    for wrong in ("10", "5-6:3", "5:x"):
        assert "--cases" in bench("warm-start", "--cases", wrong, "--out", tmp_path / "out", code=2).stderr


@each_experiment
def test_tables_and_plots_have_every_solver(name: str, tmp_path: Path) -> None:
    shown = bench(name, *SMALL[name], "--out", tmp_path).stdout
    page = (tmp_path / "tables.md").read_text()
    for solver in ("first-fit-decreasing", "smart+fill" if name == "pareto" else "random"):
        assert f"{solver} " in shown
        assert f"| {solver} |" in page
    pictures = list(tmp_path.glob("*.png"))
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert all(picture.name in shown for picture in pictures)


@each_experiment
def test_unknown_solvers_are_named(name: str, tmp_path: Path) -> None:
    wrong = bench(name, "--solvers", "greedy,magic", "--out", tmp_path / "out", code=2)
    assert "--solvers" in wrong.stderr
    assert "magic" in wrong.stderr
    assert not (tmp_path / "out").exists()


def test_usual_solvers_that_are_not_installed_are_left_out_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert options.solvers_or("--solvers", None, ("greedy", "magic", "search", "greedy")) == ("greedy", "search")
    assert "magic is not installed" in capsys.readouterr().err
    assert options.solvers_or("--solvers", "smart", ("greedy",)) == ("smart",)


def test_the_thesis_tables_count_by_tasks(tmp_path: Path) -> None:
    bench("thesis", *SMALL["thesis"], "--no-plots", "--out", tmp_path)
    page = (tmp_path / "tables.md").read_text()
    assert page.count("| solver | 2 tasks | 3 tasks |") == 2


def test_real_topologies_come_from_the_folder_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "topologies").mkdir(parents=True)
    (tmp_path / "data" / "topologies" / "Three.graphml").write_text(GRAPHML)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))
    bench("generalise", *FAST, "--nodes", "4", "--tasks", "2", "--rounds", "2", "--no-exact", "--out", tmp_path / "out")
    found = results(tmp_path / "out")
    assert found["networks"] == {"random 4": {"nodes": 4}, "Three": {"nodes": 3}}
    cases = found["regimes"]["tight"]["2"]
    assert all(case["instances"] == 2 for case in cases.values())
    assert (tmp_path / "out" / "tight.png").exists()
    missing = bench("generalise", "--topologies", "None.graphml", "--out", tmp_path / "no", code=2)
    assert "None.graphml" in missing.stderr
    monkeypatch.delenv("CES_DATA_DIR")
    assert "neither" in bench("generalise", "--nodes", "", "--out", tmp_path / "no", code=2).stderr


def test_the_weight_of_balance_is_what_it_is_said_to_be() -> None:
    """Scaled weights rank plans as a (1 - L) + (1 - a) D does, with L at equal weights: the checker agrees on L."""
    for balance in (0.2, 0.8):
        asked = Weighed("tight", 4, 0, 7, balance=balance)
        result = get_solver("first-fit-decreasing").solve(read_instance(asked.instance()))
        assert result.metrics is not None
        imbalance, satisfied = result.metrics.load_imbalance / asked.scale, result.metrics.bandwidth_satisfaction
        usual = {
            "load_imbalance": imbalance,
            "bandwidth_satisfaction": satisfied,
            "composite": 0.5 * (1.0 - imbalance) + 0.5 * satisfied,
        }
        plain = Weighed("tight", 4, 0, 7, balance=0.5).instance()
        assert check(plain, result.to_dict() | {"metrics": usual}) == []
        weighed = balance * (1.0 - imbalance) + (1.0 - balance) * satisfied
        assert weighed == pytest.approx(2.0 * (1.0 - balance) * result.metrics.composite + 2.0 * balance - 1.0)


def answer(solver: str, seed: int, balance: float, point: tuple[float, float] | None) -> Answer:
    """``point``: L at equal weights, and D."""
    asked = Weighed("tight", 3, 0, seed, balance=balance)
    if point is None:
        return Answer(asked, solver, None, None, None, None, "packing", 1.0, 1.0)
    imbalance = asked.scale * point[0]
    return Answer(asked, solver, None, 0.5 * (1 - imbalance) + 0.5 * point[1], imbalance, point[1], None, 1.0, 1.0)


def test_fronts_are_compared_on_jobs_that_all_placed_and_by_the_weighed_objective() -> None:
    question = Question(("tight",), (3,), 3, 1, ("even", "wide"), None, (0.5, 0.8))
    answers = [
        answer(name, seed, balance, (imbalance + seed / 10, satisfied))
        for name, imbalance, satisfied in (("even", 0.1, 0.5), ("wide", 0.3, 1.0))
        for seed in (1, 2)
        for balance in (0.5, 0.8)
    ]
    answers += [answer("even", 3, 0.5, None), answer("wide", 3, 0.5, (0.9, 0.1))]
    best: dict[Any, float] = {}
    for each in answers:
        if each.composite is not None:
            best[each.round] = max(best.get(each.round, -9.0), each.composite)
    found = summarise(question, answers, {}, best)["regimes"]["tight"]
    assert (found["instances"], found["placed_by_all"]) == (3, 2)
    even, wide = (found["solvers"][name]["by_balance"] for name in ("even", "wide"))
    assert even["0.5"]["load_imbalance"]["mean"] == pytest.approx(0.25)
    assert even["0.5"]["load_imbalance"]["std"] == pytest.approx(0.1 / 2**0.5)
    # Jobs differ by a constant alone, which is taken off.
    assert even["0.5"]["load_imbalance_within"]["mean"] == pytest.approx(0.25)
    assert even["0.5"]["load_imbalance_within"]["std"] == pytest.approx(0.0, abs=1e-12)
    # 0.5 (1 - L) + 0.5 D: 0.7 and 0.85 but for the job; 0.8 (1 - L) + 0.2 D: 0.82 and 0.76.
    assert even["0.5"]["regret"]["mean"] == pytest.approx(0.15)
    assert wide["0.5"]["regret"]["mean"] == pytest.approx(0.0)
    assert even["0.8"]["regret"]["mean"] == pytest.approx(0.0)
    assert wide["0.8"]["regret"]["mean"] == pytest.approx(0.06)


def test_names_beside_a_plot_do_not_overlap() -> None:
    assert spaced([0.1, 0.5], 0.1) == [0.1, 0.5]
    found = spaced([0.2, 0.21, 0.9, 0.95, 0.97], 0.1, most=1.0)
    assert found == pytest.approx([0.2, 0.3, 0.8, 0.9, 1.0])
    assert spaced([], 0.1) == []


def test_a_job_without_a_place_counts_whole(tmp_path: Path) -> None:
    bench("quality", *SMALL["quality"], "--time-limits", "0.5", "--no-plots", "--out", tmp_path)
    for regime in results(tmp_path)["regimes"].values():
        known, size = regime["best_known"]["all_tasks"]["composite"], regime["placed_by_somebody"]
        for (point,) in regime["anytime"].values():
            lacking = known["mean"] * size - point["composite_or_0"]["mean"] * regime["instances"]
            assert point["shortfall"]["n"] == size
            assert point["shortfall"]["mean"] == pytest.approx(lacking / size, abs=1e-5)
