"""``python -m ces_testbed.background ROOT [--tied]``: holds a cluster up until it is told to end.

The cluster to start stands in ROOT/cluster.json. SIGTERM and SIGINT end it; with ``--tied`` so does the end of
standard input, that is, the end of whoever holds the other side, however that came about.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from ces_common.telemetry import configure_logging
from ces_testbed.cluster import Cluster
from ces_testbed.errors import Interrupted, TestbedError
from ces_testbed.progress import News, Told
from ces_testbed.spec import Files

LOOK_S = 0.1


class _Wish:
    """Whether the cluster is still wanted. A plain flag, safe to set from a signal handler."""

    def __init__(self) -> None:
        self.up = True

    def end(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.up = False


def _watch_input(wish: _Wish) -> None:
    sys.stdin.buffer.read()
    wish.end()


def hold(files: Files, *, tied: bool) -> int:
    """Start, wait, stop. Exit status 0, or 1 where it could not start or something was left behind."""
    wish = _Wish()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, wish.end)
    if tied:
        threading.Thread(target=_watch_input, args=(wish,), name="tied", daemon=True).start()
    spec = files.read_spec()
    if spec is None:
        print(f"{files.spec} holds no cluster", file=sys.stderr)
        return 1
    told = Told(files.progress)

    def report(step: str, done: int, total: int) -> None:
        told.say(News(kind="step", step=step, done=done, total=total))

    cluster = Cluster(spec, files, report=report, wanted=lambda: wish.up)
    failed = False
    try:
        cluster.start()
        told.say(News(kind="ready", text=cluster.url))
        while wish.up:
            time.sleep(LOOK_S)
    except Interrupted:
        pass
    except Exception as error:
        failed = True
        expected = isinstance(error, TestbedError)
        told.say(News(kind="failed", text=str(error) if expected else f"{type(error).__name__}: {error}"))
        if not expected:
            raise
    finally:
        left = cluster.stop()
        told.say(News(kind="stopped", left=left))
    return 1 if failed or left else 0


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 2) or (len(arguments) == 2 and arguments[1] != "--tied"):
        raise SystemExit("usage: python -m ces_testbed.background ROOT [--tied]")
    configure_logging("cluster")
    raise SystemExit(hold(Files(Path(arguments[0])), tied=len(arguments) == 2))


if __name__ == "__main__":
    main()
