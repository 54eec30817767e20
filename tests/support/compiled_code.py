"""Compiled code that was kept beside the modules, for a user who may not write there."""

from __future__ import annotations

import shutil
from pathlib import Path

from numba.core.caching import _CacheLocator

import ces_core


def copy_compiled(target: Path, owner: int) -> None:
    """Puts what numba kept beside the core's modules to where a process of the user ``owner`` finds it whose
    ``NUMBA_CACHE_DIR`` is ``target``."""
    target.mkdir()
    for kept in Path(ces_core.__file__).parent.rglob("__pycache__"):
        folder = target / _CacheLocator.get_suitable_cache_subpath(str(kept.parent / "module.py"))
        folder.mkdir()
        for file in kept.glob("*.nb[ic]"):
            shutil.copy(file, folder)
    for path in (target, *target.rglob("*")):
        shutil.chown(path, owner, owner)
