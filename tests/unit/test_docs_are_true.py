"""What the documentation says of commands, files, settings and addresses is so."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from doc_pages import HAND_WRITTEN, PAGES, ROOT, blocks, command_lines, each_own_page, each_page, without_blocks

from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_common.messages.events import EVENTS
from ces_common.queuefile import QueueFile
from ces_core.registry import DEFAULT, SOLVERS
from ces_federation.peers import PeersFile
from ces_manager.access.grants import GrantsFile
from ces_rl.commands import algorithm_command, env_of
from ces_testbed.topology import Topology

sys.path.insert(0, str(ROOT / "docs"))

import generate
from generator import cli, imports, limits, markdown, openapi, settings

JOB = {"name": "example", "tasks": [{"name": "worker", "replicas": 5, "command": ["python"]}]}
SOURCES = (
    "libs/*/src",
    "services/*/src",
    "workloads/src",
    "deploy",
    "tests/conftest.py",
    "tests/support",
    "tests/integration",
    "tests/unit/ces_federation",
    "experiments/src",
    "docker-compose.yml",
    "docker-compose.monitoring.yml",
    "docker-compose.regions.yml",
)
READABLE = {".py", ".yml", ".yaml", ".sh", ".env", ".service"}
MOST_WORDS = 3000
NO_EVENTS = {
    "cpu.idle",
    "job.yaml",
    "topology.yaml",
    "node.compute",
    "user.slice",
    "node.network",
}  # files and keys that look like one
LEFT_OUT = {"...", "FILE", "URL", "JOB", "NAME", "NODE"}


def test_the_generated_parts_are_current() -> None:
    assert generate.unexplained() == [], "see docs/generator/words.py"
    stale = [
        str(path.relative_to(ROOT)) for path, text in generate.expected_texts().items() if path.read_text() != text
    ]
    assert stale == [], "run `make docs`"


BOUNDED = (
    "jobfile",
    "queuefile",
    "quantities",
    "messages.api",
    "messages.bounds",
    "messages.agent_queries",
    "messages.queries",
    "messages.reports",
)
LIMIT = re.compile(r"^((?:MAX|LARGEST|LONGEST|MOST|STREAMS_PER)_?[A-Z_]*|PER_S|BURST)\b.*=", re.MULTILINE)


def test_every_limit_of_what_comes_from_outside_is_in_the_table() -> None:
    modules = {
        f"ces_common.{name}": ROOT / f"libs/ces_common/src/ces_common/{name.replace('.', '/')}.py" for name in BOUNDED
    }
    for path in sorted((ROOT / "services/manager/src/ces_manager/api").glob("*.py")):
        modules[f"ces_manager.api.{path.stem}"] = path
    there = {f"{module}.{name}" for module, path in modules.items() for name in LIMIT.findall(path.read_text())}
    told = {constant for group in limits.GROUPS.values() for _, constant, _, _ in group}
    assert len(there) > 20
    assert there - told == {"ces_manager.api.parameters.LONGEST_NUMBER"}, "add them to docs/generator/limits.py"


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
    env = env_of(words)  # of `ces train ALGO`, whose other options depend on it
    return command if env is None else algorithm_command(command.name, env), words


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
        elif "peers" in document:
            PeersFile.model_validate(document)
        elif "grants" in document:
            GrantsFile.model_validate(document)
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


@each_page
def test_what_is_installed_from_a_folder_has_the_extras_named(page: Path) -> None:
    installed = [line for line in page.read_text().splitlines() if "pip install" in line]
    for folder, extras in re.findall(r"\./((?:libs|services|examples)/[\w-]+|experiments|workloads)(?:\[([\w,]+)\])?",
                                     "\n".join(installed)):  # fmt: skip
        told = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        assert {*filter(None, extras.split(","))} <= {*told.get("optional-dependencies", ())}, folder


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


def guides() -> list[Path]:
    """Pages that people read from top to bottom: neither figures nor reference."""
    return [page for page in HAND_WRITTEN if "benchmarks" not in page.parts]


each_guide = pytest.mark.parametrize("page", guides(), ids=lambda page: str(page.relative_to(ROOT)))


@each_guide
def test_no_guide_is_longer_than_one_sitting(page: Path) -> None:
    assert len(page.read_text().split()) <= MOST_WORDS


def in_backticks(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", without_blocks(page))


@each_own_page
def test_every_event_exists(page: Path) -> None:
    aggregates = "|".join({aggregate for aggregate, _ in EVENTS})
    named = {text for text in in_backticks(page) if re.fullmatch(rf"(?:{aggregates})\.[a-z_]+", text)}
    assert named - NO_EVENTS <= {f"{aggregate}.{kind}" for aggregate, kind in EVENTS}


def is_defined(dotted: str) -> bool:
    """Whether ``ces_package.module.Name`` names a module, or something that a module defines or imports."""
    package, *parts = dotted.split(".")
    path = imports.sources().get(package)
    while path is not None and parts:
        name, *parts = parts
        if (path / name).is_dir() or (path / f"{name}.py").exists():
            path = path / name if (path / name).is_dir() else path / f"{name}.py"
            continue
        text = (path / "__init__.py" if path.is_dir() else path).read_text()
        return bool(
            re.search(
                rf"^(?:(?:async )?def|class|from .* import.*\b|import) ?{name}\b|^(?:[A-Z_]+, )*{name}\b", text, re.M
            )
        )
    return path is not None


@each_own_page
def test_every_module_exists(page: Path) -> None:
    pattern = rf"\b(?:{'|'.join(imports.sources())})(?:\.\w+)+"
    text = re.sub(r"[\w/]+/\w+\.\w+", "", page.read_text())
    assert [name for name in sorted(set(re.findall(pattern, text))) if not is_defined(name)] == []


@each_own_page
def test_every_source_file_exists(page: Path) -> None:
    """Paths of the repository, and paths that begin with a package's name; NAME stands for any name."""
    sources = imports.sources()
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    folders = "|".join(sorted({path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."} - made))
    missing = []
    for text in in_backticks(page):
        for path in re.findall(rf"(?<![\w/.~-])(?:\./)?((?:{folders}|{'|'.join(sources)})/[\w./*-]*\w)", text):
            first, _, rest = path.partition("/")
            if not list((sources[first] if first in sources else ROOT / first).glob(rest.replace("NAME", "*"))):
                missing.append(path)
    assert missing == []


def importers(library: str) -> set[str]:
    """The packages that import the library anywhere in their sources."""
    pattern = re.compile(rf"^\s*(?:from|import) {library}\b", re.MULTILINE)
    return {
        name
        for name, source in imports.sources().items()
        if any(pattern.search(path.read_text()) for path in source.rglob("*.py"))
    }


def test_heavy_libraries_are_imported_where_the_architecture_says() -> None:
    text = " ".join((ROOT / "docs/architecture.md").read_text().split())
    assert "torch is imported by `ces_rl` and two experiments" in text
    assert importers("torch") == {"ces_rl", "ces_experiments"}
    assert "SQLAlchemy and Alembic by `ces_common.db` and the manager" in text
    assert importers("sqlalchemy") | importers("alembic") == {"ces_common", "ces_manager"}


def test_the_managers_folders_are_those_of_the_architecture() -> None:
    section = (ROOT / "docs/architecture.md").read_text().partition("### The manager\n")[2].partition("\n## ")[0]
    rows = [
        cell for row in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE) for cell in re.findall(r"`(\w+)`", row)
    ]
    manager = imports.sources()["ces_manager"]
    assert sorted(rows) == sorted(path.parent.name for path in manager.glob("*/__init__.py"))
    modules = re.findall(r"`(\w+/\w+)`", section)
    assert [name for name in modules if not (manager / f"{name}.py").exists()] == []


@each_own_page
def test_every_program_run_by_module_exists(page: Path) -> None:
    sources = imports.sources()
    for name in re.findall(r"python -m\s+((?:ces_\w+)(?:\.\w+)*)(?![\w<])", page.read_text()):
        package, *parts = name.split(".")
        path = sources[package].joinpath(*parts)
        program = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
        assert program.exists(), name
        assert program.stem == "__main__" or "__main__" in program.read_text(), name


def described() -> Iterator[tuple[str, str]]:
    """Guides, and the docstrings and comments of all code."""
    for page in guides():
        yield page.name, page.read_text()
    for source in imports.sources().values():
        for path in source.rglob("*.py"):
            yield str(path.relative_to(ROOT)), path.read_text()


def test_every_event_that_code_or_guides_name_exists() -> None:
    aggregates = "|".join(sorted({aggregate for aggregate, _ in EVENTS}))
    names = rf"(?:ces\.v1\.(?:evt\.)?|`)({aggregates})\.([a-z]+)(?=[.`])"
    found = {(who, match) for who, text in described() for match in re.findall(names, text)}
    assert len({match for _, match in found}) > 5
    assert {(who, match) for who, match in found if match not in EVENTS and ".".join(match) not in NO_EVENTS} == set()


def test_every_entry_point_group_that_is_named_is_read_somewhere() -> None:
    code = "".join(path.read_text() for source in imports.sources().values() for path in source.rglob("*.py"))
    for page in guides():
        for group in re.findall(r"entry-point\s+group\s+`([\w.]+)`", page.read_text()):
            assert f'"{group}"' in code, f"{page.name}: {group}"


def test_events_named_by_subject_exist() -> None:
    """In docstrings too: examples of subjects are copied from there."""
    sources = [path for source in imports.sources().values() for path in source.rglob("*.py")]
    known = {f"{aggregate}.{kind}" for aggregate, kind in EVENTS}
    for path in [*PAGES, *sources]:
        named = set(re.findall(r"\bces\.v1\.evt\.([a-z]+\.[a-z]+)", path.read_text()))
        assert named <= known, path
