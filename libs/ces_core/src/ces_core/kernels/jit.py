"""How functions are compiled: by numba where it is installed, not at all where it is not.

Compiled code is kept beside the module, or in ``NUMBA_CACHE_DIR``, until a source that it may have come from changes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    if os.environ.get("CES_NO_NUMBA"):
        raise ImportError("numba is switched off by CES_NO_NUMBA")
    import numba
    from numba.core import caching
except ImportError:
    COMPILED = False

    def compiled(function: Function) -> Function:
        return function

    inner = compiled
else:
    COMPILED = True
    OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

    PACKAGE = Path(__file__).parents[1]
    LAYERS = ("kernels", "paths", "policy")
    """Folders with compiled code, each of which may call those before it; other packages may call all of them."""

    @functools.cache
    def sources_of(folder: Path) -> bytes:
        """A digest of everything that compiled code of this folder may have come from."""
        layers = [PACKAGE / layer for layer in LAYERS]
        below = layers[: layers.index(folder)] if folder in layers else layers
        digest = hashlib.sha256((PACKAGE / "problem.py").read_bytes())
        for source in sorted(source for part in (*below, folder) for source in part.glob("*.py")):
            digest.update(source.name.encode() + source.read_bytes())
        return digest.digest()

    class Kept(caching.FunctionCache):
        """numba asks whether the function's own file has changed; compiled code also holds what the function calls."""

        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function)  # type: ignore[no-untyped-call]
            kept = self._cache_file
            kept._source_stamp = (kept._source_stamp, sources_of(Path(function.__code__.co_filename).parent))

    def compiled(function: Function) -> Function:
        """For functions that Python calls."""
        dispatcher = numba.njit(**OPTIONS)(function)
        with contextlib.suppress(RuntimeError):  # there is no folder that the compiled code can be kept in
            dispatcher._cache = Kept(function)
        return cast(Function, dispatcher)

    def inner(function: Function) -> Function:
        """For functions that compiled code alone calls: they need no way in from Python, which takes long to compile
        where arguments have a hundred arrays between them."""
        options: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return cast(Function, numba.njit(**options)(function))
