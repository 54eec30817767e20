"""``python -m ces_workloads.pipeline``: a task of an application. CES tells it what to do.

Exit status: 0 done, 2 bad arguments or environment, 143 ended by SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

SIGTERM_STATUS = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    # As the first process of a container, a program without a handler would ignore SIGTERM.
    signal.signal(signal.SIGTERM, _stop)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # before numpy loads: a task has one thread
    options = _parser().parse_args(arguments)
    from ces_workloads import peers
    from ces_workloads.pipeline.ways import duties_of, names_of
    from ces_workloads.pipeline.worker import Worker

    try:
        members = peers.from_environment(os.environ)
        duties = duties_of(members.me.task, os.environ)
        worker = Worker(
            duties,
            members,
            lambda told: _line({"progress": told}),
            options.seconds,
            options.seed,
            again=options.again,
            tell_answers=(lambda told: _line({"answers": told})) if options.answers else None,
        )
    except peers.BadEnvironment as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    what = f"each costs {duties.work_us / 1000:g} ru" if duties.work_us else "without work"
    ways = names_of(list(duties.ways.values()))
    print(f"{duties.task} on {members.me.node}, {what}: {ways}", file=sys.stderr, flush=True)
    _line({"result": worker.run()})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ces_workloads.pipeline",
        description="A task of an application: sends its user's requests, works on those that come, and hands them on.",
    )
    parser.add_argument(
        "--seconds",
        type=_positive,
        help="how long a sender sends; the others end with the last of them (default: until it is stopped)",
    )
    parser.add_argument(
        "--again",
        type=_positive,
        help="ask a request without an answer again after so many seconds (default: never)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the times between requests (default: %(default)s)")
    parser.add_argument(
        "--answers",
        action="store_true",
        help="print each answer, too: when it came, by a clock of the machine, and what it took, in ms",
    )
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def _line(content: dict[str, Any]) -> None:
    print(json.dumps(content, allow_nan=False), flush=True)


def _stop(number: int, frame: FrameType | None) -> None:
    sys.exit(SIGTERM_STATUS)


if __name__ == "__main__":
    sys.exit(main())
