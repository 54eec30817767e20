"""``ces decompose`` as people and scripts meet it."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from ces_client.cli import decompose as commands
from ces_client.errors import BadInput
from ces_client.files import load_job

EXAMPLES = Path(__file__).parents[4] / "examples" / "graphs"
CAMERAS = str(EXAMPLES / "cameras.yaml")
PLACE = {"feasible": True, "version": 1, "solver": "search", "metrics": {"composite": 0.8}}


def run(*words: str, code: int = 0) -> Any:
    app = typer.Typer()
    app.command()(commands.decompose)
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def told(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "-o", "json").stdout)
    return found


def test_the_entry_point_leads_here() -> None:
    (point,) = entry_points(group="ces.commands", name="decompose")
    assert point.load() is commands.decompose


def test_levels_and_rivals_are_shown_side_by_side() -> None:
    text = run(CAMERAS).stdout
    assert "* clusters" in text
    for word in ("unsplit", "random", "metis", "part1-0", "capture-1"):
        assert word in text


@pytest.mark.parametrize("by", ["clusters", "optimal", "compute", "mobile"])
def test_every_way_keeps_to_capacities_and_leaves_no_vertex_out(by: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    parts = "6" if by == "compute" else "4"
    found = told(CAMERAS, "--by", by, "--parts", parts, "--job", str(file), "--time-limit", "60")
    names = [each["name"] for each in yaml.safe_load(Path(CAMERAS).read_text())["graph"]["vertices"]]
    assert sorted(name for part in found["parts"] for name in part) == sorted(names)
    job = load_job(file)
    assert all(task.cpu <= 4000 and task.memory <= 4 * 2**30 for task in job.expand_tasks())
    (level,) = [row for row in found["levels"] if row["chosen"]]
    assert level["parts"] == len(job.tasks)
    assert sum(flow.max for flow in job.expand_flows()) == level["cut"]


def test_what_is_near_the_user_has_its_labels(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    run(CAMERAS, "--by", "mobile", "--parts", "4", "--job", str(file), "--time-limit", "60")
    near = [task for task in load_job(file).expand_tasks() if task.name == "near-0"]
    assert [(task.labels, task.arch) for task in near] == [({"site": "roof"}, "arm64")]


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra of ces-client: it draws")
    run(str(EXAMPLES / "shop.json"), "--parts", "3", "--rate", "50", "--draw", str(tmp_path / "shop.svg"))
    assert "gateway" in (tmp_path / "shop.svg").read_text()


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((CAMERAS, "--parts", "40"), "parts"),
        ((CAMERAS, "--cpu", "1"), "cpu"),
        ((CAMERAS, "--memory", "much"), "--memory"),
        ((CAMERAS, "--draw", "picture.pdf"), "--draw"),
        ((CAMERAS, "--by", "mobile", "--state", "0"), None),
        ((str(EXAMPLES / "shop.json"), "--dry-run"), "run"),
        ((CAMERAS, "--run", "'open"), "--run"),
    ],
)
def test_what_cannot_be_names_the_field_and_the_remedy(words: tuple[str, ...], field: str | None) -> None:
    app = typer.Typer()
    app.command()(commands.decompose)
    error = CliRunner().invoke(app, list(words)).exception
    if field is None:
        assert error is None
        return
    assert isinstance(error, BadInput)
    assert error.problem.errors[0]["field"] == field
    assert error.problem.errors[0]["remedy"]


def test_a_dry_run_plans_and_submits_nothing(connected: Any) -> None:
    connected.on("POST", "plans", PLACE)
    found = told(CAMERAS, "--apply", "--dry-run")
    assert found["plan"]["feasible"]
    assert connected.sent("POST", "jobs") == []


NO_PLACE = {"feasible": False, "version": 1, "solver": "search"}


def test_a_dry_run_without_a_place_ends_as_a_plan_does(connected: Any) -> None:
    connected.on("POST", "plans", NO_PLACE)
    result = run(CAMERAS, "--dry-run", code=2)
    assert "no place now" in result.stdout
    assert "no place for cameras" in result.stdout
    assert len(connected.sent("POST", "plans")) == 1


def test_what_has_no_place_is_submitted_with_a_word(connected: Any, samples: Any) -> None:
    connected.on("POST", "plans", NO_PLACE)
    connected.on("POST", "jobs", samples.job("queued").model_dump(mode="json"))
    assert "there is no place for it now" in run(CAMERAS, "--apply").stdout


def test_where_no_level_has_a_place_the_one_that_was_asked_for_is_taken(connected: Any, samples: Any) -> None:
    """And not the one of fewest parts."""
    connected.on("POST", "plans", NO_PLACE)
    connected.on("POST", "jobs", samples.job("queued").model_dump(mode="json"))
    found = told(CAMERAS, "--by", "compute", "--parts", "11", "--apply")
    assert len(found["levels"]) > 1
    (chosen,) = [row for row in found["levels"] if row["chosen"]]
    assert (chosen["parts"], chosen["said"], found["feasible"]) == (11, "no place now", False)
    assert len(json.loads(connected.sent("POST", "jobs")[0].content)["tasks"]) == 11


def written(tmp_path: Path, **graph: Any) -> str:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"graph": {"name": "app", "run": {"command": ["x"]}, **graph}}))
    return str(path)


def test_no_part_has_more_cards_than_a_task_may(tmp_path: Path) -> None:
    edge = {"src": "a", "dst": "b", "bandwidth": {"min": 1, "max": 100}}
    vertices = [{"name": "a", "gpu": 40}, {"name": "b", "gpu": 40}, {"name": "c"}]
    found = told(written(tmp_path, vertices=vertices, edges=[edge]), "--cpu", "9", "--parts", "2")
    assert not any({"a", "b"} <= set(part) for part in found["parts"])
    assert len(found["job"]["tasks"]) == 2


def test_more_parts_than_a_job_may_have_are_told(tmp_path: Path) -> None:
    vertices = [{"name": f"v{i}", "cpu": 1} for i in range(70)]
    error = failure(written(tmp_path, vertices=vertices, capacity={"cpu": 1}))
    assert "takes 70 parts at least, and a job has 64 at most" in str(error.problem.errors)


def test_a_job_file_that_no_cluster_takes_is_not_written(tmp_path: Path) -> None:
    vertices = [{"name": f"v{i}"} for i in range(64)]
    env = {f"E{i}": "x" * 30_000 for i in range(2)}
    graph = written(tmp_path, vertices=vertices, run={"command": ["x"], "env": env})
    error = failure(graph, "--parts", "64", "--job", str(tmp_path / "job.json"))
    assert "larger than 1 MiB" in str(error.problem.errors)
    assert not (tmp_path / "job.json").exists()


def test_where_no_job_can_be_made_the_parts_are_shown_and_the_fields_told(tmp_path: Path) -> None:
    vertices = [{"name": name, "memory": 10**15} for name in "ab"]
    app = typer.Typer()
    app.command()(commands.decompose)
    result = CliRunner().invoke(app, [written(tmp_path, vertices=vertices), "--parts", "1"])
    assert "part1-0" in result.stdout
    assert isinstance(result.exception, BadInput)
    assert result.exception.problem.errors[0]["field"].startswith("tasks[0]")
    assert "Value error" not in str(result.exception.problem.errors)


def test_what_is_near_is_told_for_any_number_of_parts() -> None:
    (row,) = told(CAMERAS, "--by", "mobile", "--parts", "4", "--time-limit", "60")["levels"]
    assert row["near_gap"] == 0
    assert 0 < row["near_cut"] <= row["cut"]
    assert row["near_state"] >= 0
    assert "near: " in run(CAMERAS, "--by", "mobile", "--parts", "4", "--time-limit", "60").stdout


def failure(*words: str) -> BadInput:
    app = typer.Typer()
    app.command()(commands.decompose)
    error = CliRunner().invoke(app, list(words)).exception
    assert isinstance(error, BadInput), error
    return error


def test_the_best_placed_level_is_submitted(connected: Any, samples: Any) -> None:
    """Of parts of one kind: the second level has the best place."""
    answers = [PLACE | {"metrics": {"composite": score}} for score in (0.5, 0.9, 0.7)]
    connected.on("POST", "plans", *answers)
    connected.on("POST", "jobs", samples.job("queued").model_dump(mode="json"))
    found = told(CAMERAS, "--by", "compute", "--parts", "11", "--apply")
    assert found["submitted"] == samples.id
    sent = json.loads(connected.sent("POST", "jobs")[0].content)
    ranked = sorted((row for row in found["levels"]), key=lambda row: -(row["composite"] or 0))
    assert ranked[0]["chosen"]
    assert ranked[0]["composite"] == 0.9
    assert len(sent["tasks"]) == ranked[0]["parts"]
