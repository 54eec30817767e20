"""Compilation of functions by numba where it is installed, with a cache on disk.

Compiled code is stored beside the module, or in ``NUMBA_CACHE_DIR``, and discarded when a source it may depend on
changes. A user who may not write there reads it all the same.

numba counts references to arrays atomically, even when a tuple of arrays is only read. In calls with thousands of small
steps that took more than half of the time; :func:`lent` gives references that are not counted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])

try:
    if os.environ.get("CES_NO_NUMBA"):
        raise ImportError("numba is switched off by CES_NO_NUMBA")
    import numba
    from numba.core import caching
except ImportError:
    COMPILED = False

    def compiled(function: Function) -> Function:
        """Compiles a function that is called from Python."""
        return function

    inner = compiled
else:
    COMPILED = True
    OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

    PACKAGE = Path(__file__).parents[1]
    LAYERS = ("compiled", "network", "placement", "exact", "search", "learned", "amounts")
    """Folders with compiled code, each of which may call those before it; other packages may call all of them."""

    @functools.cache
    def sources_of(folder: Path) -> bytes:
        """Digest of every source file that compiled code of this folder may depend on."""
        layers = [PACKAGE / layer for layer in LAYERS]
        below = layers[: layers.index(folder)] if folder in layers else layers
        digest = hashlib.sha256((PACKAGE / "model" / "problem.py").read_bytes())
        for source in sorted(source for part in (*below, folder) for source in part.glob("*.py")):
            digest.update(source.name.encode() + source.read_bytes())
        return digest.digest()

    class ReadOnlyLocator(caching.InTreeCacheLocator):
        """Beside the module, for a user who can keep compiled code nowhere."""

        def ensure_cache_path(self) -> None:
            """It may be read only."""

    class LocatedCode(caching.CompileResultCacheImpl):
        """Where compiled code is kept: where numba would, else nowhere."""

        _locator_classes: ClassVar = [  # type: ignore[misc]
            caching.UserProvidedCacheLocator,
            caching.InTreeCacheLocator,
            caching.UserWideCacheLocator,
            ReadOnlyLocator,
        ]

    class CheckedCache(caching.FunctionCache):
        """Cache that also checks callees: numba itself only checks whether the function's own file has changed. What is
        kept elsewhere, for want of the right to write beside the module, is looked for there as well."""

        _impl_class = LocatedCode

        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function)  # type: ignore[no-untyped-call]
            stamp = (self._cache_file._source_stamp, sources_of(Path(function.__code__.co_filename).parent))
            self._files = [self._cache_file]
            beside = str(Path(function.__code__.co_filename).parent / "__pycache__")
            if self._cache_path != beside:
                self._files.append(
                    caching.IndexDataCacheFile(  # type: ignore[no-untyped-call]
                        cache_path=beside, filename_base=self._impl.filename_base, source_stamp=stamp
                    )
                )
            for kept in self._files:
                kept._source_stamp = stamp
                kept._load_index = functools.partial(_index, kept._load_index)  # type: ignore[method-assign]

        def load_overload(self, signature: Any, context: Any) -> Any:
            """From the first place that has it."""
            found = None
            for file in self._files:
                self._cache_file = file
                with contextlib.suppress(OSError):  # not readable for this user
                    found = found or super().load_overload(signature, context)  # type: ignore[no-untyped-call]
            self._cache_file = self._files[0]
            return found

        def save_overload(self, signature: Any, compiled: Any) -> None:
            """Nothing is kept where it cannot be written: it is compiled again the next time."""
            with contextlib.suppress(OSError):
                super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]

    def _index(load: Callable[[], Any]) -> Any:
        """Nothing where an index of other sources names classes that no longer exist."""
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    def compiled(function: Function) -> Function:
        """Compiles a function that is called from Python."""
        dispatcher = numba.njit(**OPTIONS)(function)
        with contextlib.suppress(RuntimeError):  # no writable folder for the cache
            dispatcher._cache = CheckedCache(function)
        return cast(Function, dispatcher)

    def inner(function: Function) -> Function:
        """Compiles a function called only from compiled code. It needs no wrapper for Python, which is slow to compile
        where arguments hold a hundred arrays."""
        options: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return cast(Function, numba.njit(**options)(function))


if TYPE_CHECKING or not COMPILED:

    def lent(arrays: Arrays) -> Arrays:
        """The same arrays (of a tuple, named or not) as borrowed references. For the first lines of a function whose
        caller keeps them alive until it returns; no reference may outlive the call."""
        return arrays

else:
    from numba.core import cgutils, types
    from numba.core.errors import TypingError
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array

    @intrinsic
    def lent(typing: Any, arrays: Any) -> Any:
        """The same arrays (of a tuple, named or not) as borrowed references. For the first lines of a function whose
        caller keeps them alive until it returns; no reference may outlive the call."""
        if not all(isinstance(kind, (types.Array, types.Number, types.Boolean)) for kind in arrays):
            raise TypingError("lent takes a tuple of arrays and numbers: of other things references would be lost")

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[0]
            for i, kind in enumerate(arrays):
                if isinstance(kind, types.Array):
                    array = make_array(kind)(context, builder, builder.extract_value(value, i))
                    array.meminfo = cgutils.get_null_value(array.meminfo.type)
                    array.parent = cgutils.get_null_value(array.parent.type)
                    value = builder.insert_value(value, array._getvalue(), i)
            return value

        return arrays(arrays), code
