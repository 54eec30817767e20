"""``python -m ces_edge_agent.scores FOLDER``: measures this machine, and prints each measurement as a line of JSON.

Whoever starts it gets what was found so far if it is ended. Once it is loaded it lets go first what runs beside it:
it has the lowest priority, is idle to the disk's scheduler, and the first to go where memory runs out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import psutil

from ces_common.messages.scores import Measurement
from ces_edge_agent import linux
from ces_edge_agent.scores.kernels import Absent, installed
from ces_edge_agent.scores.machine import core_types
from ces_edge_agent.scores.plan import KINDS, LIMIT_S, Run, lasts_s, runs_on, window_s
from ces_edge_agent.scores.storage import PATIENCE_S, measure_disk
from ces_edge_agent.scores.workers import measure


def lowest_priority(proc: Path = Path("/proc/self")) -> None:
    """For this process and all that it starts; what a machine does not offer is left out. It stays in the agent's
    control group, whose quota must count: beside other groups, that group's weight counts and no priority."""
    os.nice(19)
    with contextlib.suppress(OSError):  # its session is weighed as one, where the kernel does so
        (proc / "autogroup").write_text("19")
    with contextlib.suppress(OSError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    with contextlib.suppress(OSError):
        (proc / "oom_score_adj").write_text("1000")


def main(folder: Path) -> None:
    ends = time.monotonic() + LIMIT_S
    linux.die_with_parent(signal.SIGKILL)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    lowest_priority()
    runs = runs_on(core_types(os.sched_getaffinity(0)), [kind for kind in KINDS if installed(kind)])
    window = window_s(sum(run.kind != "disk" for run in runs))
    for run in runs:
        needs_s = PATIENCE_S if run.kind == "disk" else lasts_s(window)
        if time.monotonic() + needs_s > ends:
            continue
        try:
            print(_measured(run, window, folder).model_dump_json(), flush=True)
        except (Absent, OSError, EOFError) as error:
            print(f"{run.kind} with {run.threads} threads is not measured: {error}", file=sys.stderr)


def _measured(run: Run, window: float, folder: Path) -> Measurement:
    return measure_disk(folder) if run.kind == "disk" else measure(run, window)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
