"""What images take from package indexes has the version that CES is tested with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted(
    path for folder in ("deploy", "services", "workloads") for path in (ROOT / folder).rglob("Dockerfile*")
)
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
)

INSTALLERS = {"pip", "setuptools", "wheel"}  # as new as in the image that the airgap's stands in for


def installed(text: str) -> list[str]:
    """The packages that a Dockerfile names to pip by themselves, without constraints."""
    found = []
    for command in re.findall(r"pip install ([^&|;\n]*)", text.replace("\\\n", " ")):
        if "-c constraints.txt" not in command:
            words = re.sub(r"\$\{[^}]*\}|--target \S+|-r \S+", "", command).split()
            found += [word for word in words if not word.startswith(("-", ".", "/")) and word not in INSTALLERS]
    return found


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_is_pinned(path: Path) -> None:
    for package in installed(path.read_text()):
        name, mark, version = package.partition("==")
        assert mark, f"{package} has no version"
        assert version == PINS[name]
