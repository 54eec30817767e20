"""How functions are compiled: by numba where it is installed, not at all where it is not.

Compiled code is kept beside the module, or in ``NUMBA_CACHE_DIR``. It counts as stale once the module of the function
that Python called has changed; who edits what that function calls deletes it (``make clean``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    if os.environ.get("CES_NO_NUMBA"):
        raise ImportError("numba is switched off by CES_NO_NUMBA")
    import numba
except ImportError:
    COMPILED = False

    def compiled(function: Function) -> Function:
        return function

    inner = compiled
else:
    COMPILED = True
    OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

    def compiled(function: Function) -> Function:
        """For functions that Python calls."""
        try:
            return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
        except RuntimeError:  # there is no folder that the compiled code can be kept in
            return cast(Function, numba.njit(**OPTIONS)(function))

    def inner(function: Function) -> Function:
        """For functions that compiled code alone calls: they need no way in from Python, which takes long to compile
        where arguments have a hundred arrays between them."""
        options: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return cast(Function, numba.njit(**options)(function))
