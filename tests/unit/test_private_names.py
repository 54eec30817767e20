"""No module imports a private name of another one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("libs", "services", "workloads", "experiments", "migrations", "tests", "docs", "deploy", "examples")
SUSPECT = re.compile(r"^\s*(?:from\s+ces_[\w.]+\s+import\b.*\b_[a-z]|_\w+(?:\s+as\s+\w+)?,\s*$)", re.MULTILINE)


@pytest.mark.parametrize("place", PLACES)
def test_no_private_name_crosses_modules(place: str) -> None:
    found = []
    for file in sorted((ROOT / place).rglob("*.py")):
        if not SUSPECT.search(text := file.read_text()):
            continue  # parsing all files would take seconds
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ces_"):
                found += [
                    f"{file.relative_to(ROOT)}:{node.lineno}: {node.module}.{each.name}"
                    for each in node.names
                    if each.name.startswith("_") and not each.name.startswith("__")
                ]
    assert found == [], "make them public, or what needs them a part of their module"
