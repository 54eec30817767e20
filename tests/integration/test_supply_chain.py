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


def test_what_the_agent_needs_installs_by_hashes_alone(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    pip = [str(tmp_path / "venv/bin/pip"), "install", "-qq", "--disable-pip-version-check", "--require-hashes", "-r"]
    lock = ROOT / "deploy/locks/edge-agent.txt"
    subprocess.run([*pip, str(lock)], check=True, timeout=600)
    changed = tmp_path / "changed.txt"
    changed.write_text("".join(line for line in lock.read_text().replace("sha256:", "sha256:0").splitlines(True)))
    changed.write_text(re.sub(r"sha256:0([0-9a-f]{63})[0-9a-f]", r"sha256:0\1", changed.read_text()))
    refused = subprocess.run([*pip, str(changed), "--force-reinstall"], capture_output=True, text=True, timeout=600)
    assert refused.returncode != 0
    assert "hash" in refused.stderr.lower()
