"""Cached code is discarded when its sources change, including callees in other files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ces_core.compiled.jit import COMPILED

CALLED = """
from ces_core.compiled.jit import inner
@inner
def called(x):
    return x + {added}
"""
CALLER = """
from ces_core.compiled.jit import compiled
from called import called
@compiled
def caller(x):
    return called(x)
if __name__ == "__main__":
    import caller as kept
    print(kept.caller(1), sum(kept.caller.stats.cache_hits.values()))
"""


def run(folder: Path, added: int) -> list[int]:
    (folder / "called.py").write_text(CALLED.format(added=added))
    (folder / "caller.py").write_text(CALLER)
    done = subprocess.run([sys.executable, "caller.py"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_a_change_of_what_is_called_is_seen(tmp_path: Path) -> None:
    assert run(tmp_path, added=1) == [2, 0]
    assert run(tmp_path, added=1) == [2, 1], "unchanged sources are not compiled again"
    assert run(tmp_path, added=2) == [3, 0]


NAMED = """
from typing import NamedTuple
from ces_core.compiled.jit import compiled
class {name}(NamedTuple):
    x: int
@compiled
def caller(one):
    return one.x
if __name__ == "__main__":
    import caller as kept
    print(kept.caller(kept.{name}(7)), sum(kept.caller.stats.cache_hits.values()))
"""


@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_a_cache_that_names_a_class_of_former_times_is_made_again(tmp_path: Path) -> None:
    for name, hits in (("Former", 0), ("Former", 1), ("Present", 0), ("Present", 1)):
        (tmp_path / "caller.py").write_text(NAMED.format(name=name))
        done = subprocess.run([sys.executable, "caller.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert [int(word) for word in done.stdout.split()] == [7, hits]
