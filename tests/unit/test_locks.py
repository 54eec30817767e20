"""The locks in deploy/locks: what services, images and builds need, as pinned, with hashes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "deploy/locks").glob("*.txt"))
HASHES = r"(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+"
ENTRY = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)(?: ; [^\\\n]+)? \\\n" + HASHES, re.MULTILINE)
TOLD = 'source deploy/packages.sh; for name in "${!needs[@]}"; do echo "$name ${needs[$name]}"; done'
NEEDS = {
    name: folders
    for name, *folders in (
        line.split()
        for line in subprocess.run(
            ["bash", "-euc", TOLD], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    )
}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


PINNED = {
    plain(name): version
    for name, _, version in (
        line.partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
}


def test_everything_that_is_installed_has_one() -> None:
    assert {lock.stem for lock in LOCKS} == set(NEEDS)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_pins_what_is_needed_as_the_constraints_do(lock: Path) -> None:
    text = lock.read_text()
    entries = {plain(name): version for name, version in ENTRY.findall(text)}
    others = [line for line in ENTRY.sub("", text).splitlines() if line and not line.startswith("#")]
    assert others == [], "nothing else is in it"
    assert {name: PINNED.get(name) for name in entries} == entries, "make locks"
    program = [sys.executable, str(ROOT / "deploy/requirements.py"), *NEEDS[lock.stem]]
    needed = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    names = {plain(re.split(r"[\[<>=!~; ]", need)[0]) for need in needed if need}
    assert names <= entries.keys(), "make locks"
