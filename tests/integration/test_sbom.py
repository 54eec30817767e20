"""The lists of what services install."""

from __future__ import annotations

import json
import os
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
