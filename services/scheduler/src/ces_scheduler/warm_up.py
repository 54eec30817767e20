"""``python -m ces_scheduler.warm_up [SOLVER]``: compiles a solver ahead, where later processes find what was
compiled."""

from __future__ import annotations

import sys

from ces_core.registry import get_solver
from ces_core.warm_up import warm_up

if __name__ == "__main__":
    warm_up(get_solver(*sys.argv[1:]))
