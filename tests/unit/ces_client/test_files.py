"""Job and topology files: each mistake with file, field and remedy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ces_client import BadInput, load_job, load_topology

EXAMPLE = Path(__file__).parents[3] / "examples" / "jobs" / "digits-ring.yaml"


def test_the_example_is_a_ring_of_five():
    job = load_job(EXAMPLE)
    assert ("worker-0", "worker-1") in [(flow.src, flow.dst) for flow in job.expand_flows()]
    assert len(job.expand_tasks()) == 5


def test_json_is_as_good_as_yaml(tmp_path, job_file):
    same = tmp_path / "job.json"
    same.write_text(json.dumps(load_job(job_file).model_dump(mode="json")))
    assert load_job(same) == load_job(job_file)


TASKS = "tasks: [{name: w, replicas: 2, command: [x]}]\n"


def errors_of(tmp_path: Path, text: str) -> list[dict[str, str]]:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_job(path)
    assert str(path) in caught.value.problem.title
    assert all(entry["remedy"] for entry in caught.value.problem.errors)
    return caught.value.problem.errors


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        (f"name: x\n{TASKS}replica: 3\n", "replica", "unknown field remove it; known fields are name, priority"),
        ("name: x\ntasks: [{name: w, comand: [x]}]\n", "tasks[0].comand", "perhaps 'command' was meant"),
        ("name: x\ntasks: [{name: w, command: [x], resources: {cpus: 1}}]\n", "tasks[0].resources.cpus", "'cpu'"),
        ("name: x\n", "tasks", "add it"),
        (f"name: X_y\n{TASKS}", "name", "lower-case letters"),
        (f"name: x\npriority: 101\n{TASKS}", "priority", "change 101"),
        (f"name: x\n{TASKS}disconnect: wait\n", "disconnect", "'stop', 'keep' or a duration"),
        ("name: x\ntasks: [{name: w, command: [x], resources: {cpu: 5x}}]\n", "tasks[0].resources.cpu", "500m"),
        (
            "name: x\ntasks: [{name: w, command: [x], resources: {cpu: lots}}]\n",
            "tasks[0].resources.cpu",
            "quantity write",
        ),
        ("name: x\ntasks: [{name: w}]\n", "tasks[0]", "nothing to run"),
        ("name: x\ntasks: [{name: w, command: [x]}, {name: w, command: [x]}]\n", "tasks", "used twice"),
        (f"name: x\n{TASKS}flows: {{topology: ring}}\n", "flows", "needs bandwidth"),
        (
            f"name: x\n{TASKS}flows: {{edges: [{{src: w-0, dst: w-9, bandwidth: {{min: 1Mbit, max: 1Mbit}}}}]}}\n",
            "flows.edges[0]",
            "no task is named 'w-9'",
        ),
        ("name: x\ntasks: 5\n", "tasks", "must be a list change 5"),
        (f"name: x\npriority: much\n{TASKS}", "priority", "must be a whole number change 'much'"),
        (f"name: x\npriority: -1\n{TASKS}", "priority", "must be at least 0 change -1"),
        ("name: x\ntasks: []\n", "tasks", "must have at least 1 entries"),
        (f"name: {'x' * 70}\n{TASKS}", "name", "use 1 to 63"),
        ("name: [x\n", "line 2, column 1", "correct the YAML"),
        ("name: x\ntasks: 5\n", "tasks", "a list"),
        (f"name: x\n{TASKS}name: y\n", "line 3, column 1", "the key 'name' is given twice, on lines 1 and 3"),
        ('{"name": "x",\n"name": "y"}', "line 2, column 1", "the key 'name' is given twice, on lines 1 and 2"),
        ("", "file", "nothing"),
        ("- a\n", "file", "a list"),
    ],
)
def test_every_mistake_names_field_and_remedy(tmp_path, text, field, words):
    found = errors_of(tmp_path, text)
    assert field in [entry["field"] for entry in found]
    said = " ".join(f"{entry['problem']} {entry['remedy']}" for entry in found)
    assert words in said
    assert not re.search(r"Input should|Field required|String should|\^\[", said), "plain words, no regular expressions"


@pytest.mark.parametrize("load", [load_job, load_topology])
def test_files_that_lie_too_deep_are_refused_with_the_line(tmp_path, load):
    path = tmp_path / "deep.yaml"
    path.write_text("name: a\ntasks: " + "[" * 2000 + "]" * 2000)
    with pytest.raises(BadInput) as refused:
        load(path)
    (wrong,) = refused.value.problem.errors
    assert wrong["field"].startswith("line 2, column ")
    assert "deep within each other" in wrong["problem"]


def test_files_that_are_no_text_or_not_there(tmp_path):
    for path, words in [(tmp_path / "none.yaml", "No such file"), (tmp_path, "directory")]:
        with pytest.raises(BadInput) as caught:
            load_job(path)
        assert words in caught.value.problem.errors[0]["problem"]
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge").write_bytes(b"a" * (2**20 + 1))
    for name, words in [("binary", "UTF-8"), ("huge", "1 MiB")]:
        with pytest.raises(BadInput, match="cannot be read") as caught:
            load_job(tmp_path / name)
        assert words in caught.value.problem.errors[0]["problem"]


def test_a_topology_file(tmp_path):
    path = tmp_path / "topology.yaml"
    path.write_text("links: [{src: a, dst: b, bandwidth: 1Gbit, medium: m}]\nmedia: [{name: m, bandwidth: 2Gbit}]\n")
    assert load_topology(path).links[0].bandwidth == 10**9
    path.write_text("links: [{src: a, dst: b, bandwith: 1Gbit}]\n")
    with pytest.raises(BadInput) as caught:
        load_topology(path)
    assert {entry["field"] for entry in caught.value.problem.errors} == {"links[0].bandwidth", "links[0].bandwith"}
