"""``python -m ces_scheduler.decomposition_process``: a DecompositionQuery comes as JSON on standard input, and its
answer goes to standard output. A process of its own, so that decisions never wait for it. Its limits hold also without
whoever started it, and what it says of an error never quotes a query: there may be secrets in it."""

from __future__ import annotations

import sys

from ces_scheduler.side_limits import confine

CPU_S, MEMORY = 25, 2**31
"""The kernel ends it beyond these: seconds of CPU, and bytes of addresses."""


def main() -> None:
    confine(CPU_S, MEMORY)

    from pydantic import ValidationError

    from ces_common.messages.decompositions import DecompositionQuery
    from ces_scheduler.decomposition import decomposed

    try:
        query = DecompositionQuery.model_validate_json(sys.stdin.buffer.read())
    except ValidationError as error:
        where = ", ".join(f"{'.'.join(map(str, each['loc']))}: {each['type']}" for each in error.errors()[:5])
        raise SystemExit(f"the query is not understood: {where}") from None
    sys.stdout.buffer.write(decomposed(query).encode())


if __name__ == "__main__":
    main()
