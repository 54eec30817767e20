"""What services install: lists of it, and by hashes alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINNED = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)


def sbom(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHON": sys.executable}
    command = [str(ROOT / "deploy/sbom.sh"), str(folder), *names]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)


def test_a_service_that_is_none_is_refused_with_those_there_are(tmp_path: Path) -> None:
    done = sbom(tmp_path, "agent")
    assert done.returncode == 2
    assert "no package agent: there are" in done.stderr
    assert "edge-agent" in done.stderr


def test_the_agents_list_names_what_it_installs_at_the_pinned_versions(tmp_path: Path) -> None:
    done = sbom(tmp_path, "edge-agent")
    assert done.returncode == 0, done.stderr
    listed = json.loads((tmp_path / "edge-agent.cdx.json").read_text())
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "ces-edge-agent")
    parts = {part["name"]: part["version"] for part in listed["components"] if not part["name"].startswith("ces-")}
    assert {"nats-py", "pydantic", "pyroute2"} <= parts.keys()
    assert {name: PINNED.get(name) for name in parts} == parts
    licensed = [part for part in listed["components"] if part.get("licenses")]
    assert len(licensed) > len(parts) / 2


def told_by(page: str) -> list[list[str]]:
    """What a device is to have pip do."""
    prefix = "sudo /opt/ces/venv/bin/pip "
    lines = (ROOT / page).read_text().splitlines()
    return [line.removeprefix(prefix).split() for line in lines if line.startswith(prefix)]


def test_a_device_installs_as_both_pages_say_by_hashes_alone(tmp_path: Path) -> None:
    told = told_by("docs/install.md")
    assert told == told_by("README.md")
    assert ["--require-hashes" in words for words in told] == [True, True, False]
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    pip = str(tmp_path / "venv/bin/pip")
    for words in told:
        subprocess.run([pip, *words], cwd=ROOT, check=True, capture_output=True, timeout=600)
    subprocess.run([pip, "check"], check=True, timeout=60)
    own = [str(tmp_path / "venv/bin/python"), "-c", "import ces_edge_agent.agent"]
    subprocess.run(own, check=True, cwd=tmp_path, timeout=60)


def test_files_of_other_hashes_are_refused(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    changed = tmp_path / "changed.txt"
    changed.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", (ROOT / "deploy/locks/build.txt").read_text()))
    pip = [str(tmp_path / "venv/bin/pip"), "install", "--require-hashes", "--no-deps", "-r", str(changed)]
    refused = subprocess.run(pip, capture_output=True, text=True, timeout=600)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
