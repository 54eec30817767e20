"""Arrays that compiled code borrows, so that it need not count who holds them.

numba counts references to arrays atomically, also where a tuple of arrays is only looked into. Where one call does
thousands of small things with them, that took more than half of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ces_core.kernels.jit import COMPILED

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])

if TYPE_CHECKING or not COMPILED:

    def lent(arrays: Arrays) -> Arrays:
        """The same arrays (of a tuple, named or not), without an owner. For the first lines of a function whose caller
        holds them until it returns; nothing of them may outlive the call."""
        return arrays

else:
    from numba.core import cgutils, types
    from numba.core.errors import TypingError
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array

    @intrinsic
    def lent(typing: Any, arrays: Any) -> Any:
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
