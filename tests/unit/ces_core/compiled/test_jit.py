"""Cached code is discarded when its sources change, including callees in other files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ces_core.compiled.jit import COMPILED

# What Python compiled of a source it takes again within the same second, if the length is the same.
ANEW = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
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


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read; the one that pytest gives is private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def run(folder: Path, added: int) -> list[int]:
    (folder / "called.py").write_text(CALLED.format(added=added))
    (folder / "caller.py").write_text(CALLER)
    done = subprocess.run(
        [sys.executable, "caller.py"], cwd=folder, capture_output=True, text=True, timeout=60, env=ANEW
    )
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
        done = subprocess.run(
            [sys.executable, "caller.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=ANEW
        )
        assert done.returncode == 0, done.stderr
        assert [int(word) for word in done.stdout.split()] == [7, hits]


@pytest.mark.needs("root")
@pytest.mark.skipif(not COMPILED, reason="needs numba")
@pytest.mark.parametrize("has_home", [True, False])
def test_another_user_reads_what_was_compiled_beside_the_module(open_folder: Path, has_home: bool) -> None:
    """One who may not write there. What else it needs it keeps at home, where it has one."""
    assert run(open_folder, added=1) == [2, 0]
    home = open_folder / "home"
    if has_home:
        home.mkdir()
        shutil.chown(home, 65534, 65534)
    environment = {"HOME": str(home if has_home else "/nonexistent"), "PATH": "/usr/bin:/bin"}

    def as_nobody(number: float) -> list[float]:
        program = f"import caller; print(caller.caller({number}), sum(caller.caller.stats.cache_hits.values()))"
        done = subprocess.run(
            [*AS_NOBODY, sys.executable, "-c", program],
            cwd=open_folder, env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return [float(word) for word in done.stdout.split()]

    before = sorted(path.name for path in (open_folder / "__pycache__").iterdir())
    assert as_nobody(1) == [2, 1]
    assert as_nobody(1.5) == [2.5, 0], "what is not there is compiled"
    assert as_nobody(1.5) == [2.5, int(has_home)]
    assert as_nobody(1) == [2, 1]
    for file in (open_folder / "__pycache__").glob("*.nbi"):
        file.chmod(0o600)
    assert as_nobody(1)[0] == 2, "one that it may not read either"
    assert sorted(path.name for path in (open_folder / "__pycache__").iterdir()) == before
