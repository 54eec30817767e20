"""Named points at which a test may kill a process, to show that nothing is lost there.

``CES_FAULT=<point>:<n>`` kills this process (SIGKILL, as a power cut would) at the n-th passage of the point. Unset,
as it always is in use, a point costs one comparison.
"""

from __future__ import annotations

import os
import signal

_POINT, _, _COUNT = os.environ.get("CES_FAULT", "").partition(":")
_left = int(_COUNT or 1)


def fault_point(name: str) -> None:
    """Die here if that is what was asked for."""
    global _left
    if name != _POINT:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
