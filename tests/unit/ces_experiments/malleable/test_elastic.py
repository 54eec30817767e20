"""``ces bench elastic`` and its likes: on a small trace of our own, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from bench_command import run_bench

from ces_experiments.malleable import commands
from ces_experiments.malleable.contenders import AS_PUBLISHED, POLICIES
from ces_experiments.malleable.edge import EDGE, Point, jobs_at
from ces_experiments.malleable.inputs import Input
from ces_experiments.malleable.speeds import PLACES, cases

HEAD = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
ROWS = [(f"j{i}", 40 * i, 900 + 100 * i, 40 * i + 600 * (1 + i % 3), 1 + i % 2) for i in range(8)]
SMALL = "small:n2g4:60:A100"


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "dl-jobs"
    speeds = folder / "elasticflow-philly" / "throughputs_A100"
    speeds.mkdir(parents=True)
    (speeds / "bert.csv").write_text("global_batch_size,1,2,4,8\n64,3.0,5.0,8.0,7.0\n")
    (folder / "elasticflow-itp").mkdir()
    rows = [
        f"{name},{at},{work},bert,{due},64,{gpus},{work // (3, 5)[gpus - 1]}\n" for name, at, work, due, gpus in ROWS
    ]
    (folder / "elasticflow-itp" / "small.csv").write_text(HEAD + "".join(rows))
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))


def results(folder: Path) -> Any:
    return json.loads((folder / "results.json").read_text())


def test_all_policies_and_a_picture(tmp_path: Path) -> None:
    shown = run_bench(commands.elastic, "--traces", SMALL, "--out", tmp_path / "out").stdout
    (found,) = results(tmp_path / "out")["inputs"].values()
    assert set(found["policies"]) == set(POLICIES)
    assert all(0 <= each["satisfied"] <= found["feasible"] for each in found["policies"].values())
    assert found["policies"]["elasticflow"]["satisfied"] >= found["policies"]["min"]["satisfied"]
    assert "8 jobs, every event when it happens" in shown.replace("\n", " ")
    assert (tmp_path / "out" / "in-time.png").read_bytes().startswith(b"\x89PNG")


def test_as_the_public_simulator_counts(tmp_path: Path) -> None:
    run_bench(commands.elastic, "--traces", SMALL, "--compat", "elasticflow", "--no-plots", "--out", tmp_path / "out")
    (found,) = results(tmp_path / "out")["inputs"].values()
    assert set(found["policies"]) == set(AS_PUBLISHED)
    assert all(each["published"] is None for each in found["policies"].values())
    assert found["policies"]["edf"]["on_time"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--traces", "absent:n2g4:60:A100"), "no absent.csv"),
        (("--traces", "small"), "neither one of"),
        (("--traces", "small:n2g4:60:T4"), "throughputs_T4"),
        (("--traces", SMALL, "--policies", "best"), "'best' is none of"),
        (("--traces", SMALL, "--policies", "afs", "--compat", "elasticflow"), "'afs' is none of"),
        (("--traces", SMALL, "--compat", "tiresias"), "'tiresias' is not elasticflow"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    shown = run_bench(commands.elastic, *arguments, "--out", tmp_path / "out", code=2).output
    assert said in " ".join(shown.replace("│", " ").split())


def test_edge_servers_against_peers(tmp_path: Path) -> None:
    few = ("--gpus", 4, "--servers", 2, "--repeats", 2, "--fewer", 2, "--sweep-arrivals", "2", "--sweep-gpus", "8")
    more = ("--sweep-servers", "1", "--sweep-speeds", "0.3", "--arrivals", "1", "--out", tmp_path / "out")
    run_bench(commands.elastic_edge, "--traces", SMALL, *few, *more)
    found = results(tmp_path / "out")
    points = found["inputs"]["small"]
    assert [point["sweep"] for point in points] == ["base", "arrivals", "gpus", "servers", "speed"]
    base = points[0]
    assert set(base["policies"]) == set(EDGE) | set(POLICIES)
    assert base["policies"]["edgeflow-donate"]["satisfied"]["n"] == 2
    for peer, gain in base["gains"].items():
        ours, theirs = (base["policies"][name]["satisfied"]["mean"] for name in ("edgeflow-donate", peer))
        assert gain["mean"] == pytest.approx(ours - theirs, abs=1e-5)
    assert points[3]["policies"]["elasticflow"] == base["policies"]["elasticflow"]  # it uses no edge servers
    assert (tmp_path / "out" / "sweeps.png").read_bytes().startswith(b"\x89PNG")


def test_arrivals_come_closer_and_deadlines_go_with_them() -> None:
    base = Point(1.0, 4, 2, 0.5, 1.0)
    plain, moved = (jobs_at(Input.of(SMALL), point) for point in (base, Point(2.0, 4, 2, 0.5, 3.0)))
    for before, after in zip(plain, moved, strict=True):
        assert after.arrived_s == before.arrived_s / 2
        assert after.deadline_s - after.arrived_s == pytest.approx(3 * (before.deadline_s - before.arrived_s))


def test_speeds_are_predicted_from_others(tmp_path: Path) -> None:
    shown = run_bench(commands.elastic_speeds, "--gpus", "A100", "--out", tmp_path / "out").stdout
    parts = {(part["known"], part["place"]): part for part in results(tmp_path / "out")["parts"]}
    assert {key: part["cases"] for key, part in parts.items() if key[1] == "any"} == {(3, "any"): 4, (2, "any"): 12}
    for known in (3, 2):
        assert sum(parts[known, place]["cases"] for place in PLACES) == parts[known, "any"]["cases"]
        errors = [each.error(each.fitted()) for each in cases("A100", known)]
        assert parts[known, "any"]["fitted_median"] == pytest.approx(median(errors), abs=1e-5)
    assert "predicted from others" in shown


def test_speeds_that_are_not_there_are_named(tmp_path: Path) -> None:
    shown = run_bench(commands.elastic_speeds, "--gpus", "T4", "--out", tmp_path / "out", code=2).output
    assert "throughputs_T4" in " ".join(shown.replace("│", " ").split())
