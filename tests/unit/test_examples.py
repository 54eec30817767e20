"""The files and programs that are shown as examples are good ones."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from doc_pages import ROOT, blocks

from ces_client.files import load_job
from ces_common.messages.api import TopologyFile
from ces_common.queuefile import QueueFile, read_queue
from ces_core.model.instance import read_instance
from ces_core.model.topologies import layout_of
from ces_core.registry import get_solver
from ces_testbed.topology import load_topology


def test_the_examples_for_researchers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the one for pandas, which CES does not install."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    examples = [text for text in blocks(ROOT / "docs/research.md", "python") if "import pandas" not in text]
    assert len(examples) >= 4
    for text in examples:
        exec(compile(text, "research.md", "exec"), {"__name__": "__main__"})
    assert layout_of("two-sites.graphml", None).wires


JOBS = sorted([*(ROOT / "examples/jobs").glob("*"), *(ROOT / "examples/applications").glob("*")])


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_every_example_of_a_job_is_valid(path: Path) -> None:
    job = load_job(path)
    if job.elastic is not None:
        job = job.at_size(job.elastic.largest)
    assert job.expand_tasks()
    assert job.expand_flows()


@pytest.mark.parametrize("path", sorted((ROOT / "examples/topologies").glob("*")), ids=lambda path: path.name)
def test_every_example_of_a_topology_is_valid(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    if "nodes" in document:
        assert load_topology(path).links
    else:
        assert TopologyFile.model_validate(document).links


def test_the_queues_file_of_the_stack_says_what_it_shows_once_it_is_uncommented(tmp_path: Path) -> None:
    shipped = ROOT / "deploy/compose/queue.yaml"
    assert read_queue(shipped) == QueueFile(), "all defaults as it stands"
    shown = shipped.read_text().partition("#\n")[2]
    uncommented = tmp_path / "queue.yaml"
    uncommented.write_text(re.sub("^# ", "", shown, flags=re.MULTILINE))
    assert read_queue(uncommented).tenants


@pytest.mark.parametrize("path", sorted((ROOT / "examples/instances").glob("*")), ids=lambda path: path.name)
def test_every_example_of_an_instance_has_a_place(path: Path) -> None:
    problem = read_instance(json.loads(path.read_text()))
    assert get_solver("exact" if problem.has_goals else "default").solve(problem).plan is not None
