"""What the documentation says of commands, files, settings and addresses is so."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from ces_client.files import load_job
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_common.queuefile import QueueFile, read_queue
from ces_core.instance import read_instance
from ces_core.solvers import DEFAULT, SOLVERS, get_solver
from ces_testbed.topology import Topology, load_topology

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import generate  # noqa: E402
from generator import cli, markdown, openapi, settings  # noqa: E402

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])
HAND_WRITTEN = [page for page in PAGES if "reference" not in page.parts]
JOB = {"name": "example", "tasks": [{"name": "worker", "replicas": 5, "command": ["python"]}]}
SOURCES = ("libs/*/src", "services/*/src", "workloads/src", "deploy", "tests/conftest.py", "docker-compose.yml")
READABLE = {".py", ".yml", ".yaml", ".sh", ".env", ".service"}
LEFT_OUT = {"...", "FILE", "URL", "JOB", "NAME", "NODE"}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
each_own_page = pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, *languages: str) -> list[str]:
    """The page's fenced blocks in one of the languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language in languages]


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def command_lines(page: Path, program: str) -> list[str]:
    """Everything on the page that calls ``program``: lines of shell blocks, and text set as code."""
    lines = [line for text in blocks(page, "sh", "") for line in text.replace("\\\n", " ").splitlines()]
    lines += [line.removeprefix("    ") for line in without_blocks(page).splitlines() if line.startswith("    ")]
    calls = [part for line in lines for part in re.split(r"&&|\||;", line.partition(" #")[0])]
    inside = [
        re.search(rf"(?:^|[\s/])({program}(?: .*)?)$", call.strip()) for call in calls
    ]  # also behind sudo and the like
    alone = [re.match(rf"{program} .*", text) for text in re.findall(r"`([^`\n]+)`", without_blocks(page))]
    return [match.group(match.lastindex or 0) for match in (*inside, *alone) if match]


def test_the_generated_parts_are_current() -> None:
    assert generate.unexplained() == [], "see docs/generator/words.py"
    stale = [str(path.relative_to(ROOT)) for path, text in generate.wanted().items() if path.read_text() != text]
    assert stale == [], "run `make docs`"


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {markdown.anchor(heading) for heading in headings}


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        if "://" in target:
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if fragment:
            assert fragment in anchors(file), target


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words behind ``ces`` call, and what is left of them. Raises KeyError."""
    commands, command = cli.tree(), None
    while words:
        if commands is None or words[0].startswith("-"):
            break
        command, words = commands[words[0]], words[1:]
        commands = cli.members(command)
    return command, words


@each_page
def test_every_ces_command_exists(page: Path) -> None:
    for call in command_lines(page, "ces"):
        words = shlex.split(call.replace("<", "").replace(">", "").replace("[", "").replace("]", ""))[1:]
        if not words or words[0] in LEFT_OUT:
            continue
        try:
            command, rest = find_command(words)
        except KeyError:
            pytest.fail(f"`{call}`: no such command")
        if command is None:
            continue
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        unknown = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in options]
        assert not unknown or page.name == "cli.md", f"`{call}`: no option {unknown}"


@each_own_page
def test_every_make_target_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for call in command_lines(page, "make"):
        named = [word for word in shlex.split(call)[1:] if "=" not in word and not word.startswith("-")]
        assert set(named) <= targets, call


@cache
def known_variables() -> set[str]:
    """Settings, and whatever else programs, compose and tests name."""
    found = set(settings.variables())
    files = [path for pattern in SOURCES for path in ROOT.glob(pattern)]
    for top in files:
        inner = [top] if top.is_file() else [path for path in top.rglob("*") if path.suffix in READABLE]
        for path in inner:
            found |= set(re.findall(r"\bCES_[A-Z_]+[A-Z]\b", path.read_text()))
    return found


@each_page
def test_every_variable_is_read_somewhere(page: Path) -> None:
    streams = {"CES_EVT", "CES_DEAD"}
    named = set(re.findall(r"\bCES_[A-Z_]+[A-Z]\b", page.read_text())) - streams
    assert named <= known_variables()


def test_the_agents_environment_file_names_settings_only() -> None:
    text = (ROOT / "deploy/systemd/agent.env").read_text()
    assert set(re.findall(r"^(CES_\w+)=", text, re.MULTILINE)) <= settings.variables()


@each_own_page
def test_every_yaml_example_is_valid(page: Path) -> None:
    for text in blocks(page, "yaml"):
        document = yaml.safe_load(text)
        if "nodes" in document:
            Topology.model_validate(document)
        elif "links" in document:
            TopologyFile.model_validate(document)
        elif "services" in document:
            compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
            assert set(document["services"]) <= set(compose["services"])
        elif "tenants" in document:
            QueueFile.model_validate(document)
        else:
            JobFile.model_validate(JOB | document)


@each_own_page
def test_every_json_example_is_json(page: Path) -> None:
    for text in blocks(page, "json"):
        document = json.loads(text)
        if "links" in document:
            TopologyFile.model_validate(document)


@each_own_page
def test_every_python_example_compiles(page: Path) -> None:
    for text in blocks(page, "python"):
        compile(text, str(page), "exec")


@each_own_page
def test_every_address_of_the_api_exists(page: Path) -> None:
    paths = openapi.description()["paths"]
    for line in (line for text in blocks(page, "sh") for line in text.splitlines() if "curl " in line):
        target = re.search(r'"\$CES_URL(/v1[^"?]*)', line)
        assert target, line
        method = re.search(r"-X (\w+)", line)
        pattern = {re.sub(r"\{\w+\}", "[^/]+", path): operations for path, operations in paths.items()}
        given = target.group(1).replace("$JOB", "job")
        matching = [operations for path, operations in pattern.items() if re.fullmatch(path, given)]
        verb = (method.group(1) if method else "GET").lower()
        assert any(verb in operations for operations in matching), line


@pytest.mark.parametrize("path", sorted((ROOT / "examples/jobs").glob("*")), ids=lambda path: path.name)
def test_every_example_of_a_job_is_valid(path: Path) -> None:
    job = load_job(path)
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
    assert get_solver("default").solve(problem).plan is not None


def test_the_licence_is_the_one_that_the_packages_name() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0" in text
    manifests = [*ROOT.glob("libs/*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml")]
    assert all('license = "Apache-2.0"' in manifest.read_text() for manifest in manifests)


def test_every_solver_has_a_row() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|(?=.*\|.*\|.*\|$)", (ROOT / "docs/solvers.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(set(SOLVERS) - {DEFAULT})


def test_scripts_that_pages_tell_to_run_are_there() -> None:
    for page in HAND_WRITTEN:
        for name in re.findall(r"\bdeploy/[\w./-]+\w", page.read_text()):
            path = ROOT / name
            assert path.exists(), f"{page.name}: {name}"
            assert path.suffix != ".sh" or os.access(path, os.X_OK) or path.name == "site.sh", name
