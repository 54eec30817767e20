"""``compiled``: numba's ``njit`` where numba is there, the function itself where it is not."""

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

else:
    COMPILED = True

    def compiled(function: Function) -> Function:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        try:
            return cast(Function, numba.njit(cache=True, **options)(function))
        except RuntimeError:  # there is no folder that the compiled code can be kept in
            return cast(Function, numba.njit(**options)(function))
