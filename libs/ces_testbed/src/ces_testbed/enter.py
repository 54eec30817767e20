"""``python -m ces_testbed.enter NAMESPACE PROGRAM ...``: become PROGRAM inside a network namespace.

The process keeps its id, so whoever started it can watch and end it. Light on imports: it runs before each agent.
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    """Move this process into /run/netns/<namespace>. Raises OSError."""
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(handle, CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)
    finally:
        os.close(handle)


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit("usage: python -m ces_testbed.enter NAMESPACE PROGRAM [ARGUMENT...]")
    try:
        enter(sys.argv[1])
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  # the caller's own program, by argument list
    except OSError as error:
        raise SystemExit(f"{sys.argv[2]} cannot run in {sys.argv[1]}: {error}") from error


if __name__ == "__main__":
    main()
