"""``python -m ces_testbed.background ROOT [--tied]``: keeps a cluster up until it is told to end.

ROOT/cluster.json says which cluster. One that was up before and left its state there is resumed. SIGTERM and SIGINT end
it; with ``--tied`` so does the end of standard input, that is, the end of the process at the other side, however that
came about.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import FrameType

from ces_common.logs import configure_logging
from ces_testbed.cluster import Cluster
from ces_testbed.errors import Interrupted, TestbedError
from ces_testbed.progress import News, write_news
from ces_testbed.spec import Files

LOOK_S = 0.1


class _Desired:
    """Whether the cluster is still desired. A plain flag, safe to set from a signal handler."""

    def __init__(self) -> None:
        self.up = True

    def end(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.up = False


def _watch_input(desired: _Desired) -> None:
    sys.stdin.buffer.read()
    desired.end()


def keep(files: Files, *, tied: bool) -> int:
    """Start, wait, stop. Returns the exit status: 0, or 1 where it could not start or something was left behind. What
    could not be resumed keeps its state, so that it can be tried again."""
    desired = _Desired()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, desired.end)
    if tied:
        threading.Thread(target=_watch_input, args=(desired,), name="tied", daemon=True).start()
    spec = files.read_spec()
    if spec is None:
        print(f"{files.spec} holds no cluster", file=sys.stderr)
        return 1
    say = partial(write_news, files.progress)

    def report(step: str, done: int, total: int) -> None:
        say(News(kind="step", step=step, done=done, total=total))

    def remark(text: str) -> None:
        say(News(kind="remark", text=text))

    resume = files.read_addresses() is not None
    cluster = Cluster(spec, files, report=report, remark=remark, desired=lambda: desired.up, resume=resume)
    failed = was_up = False
    try:
        cluster.start()
        was_up = True
        say(News(kind="ready", text=cluster.url))
        while desired.up:
            time.sleep(LOOK_S)
    except Interrupted:
        pass
    except Exception as error:
        failed = True
        expected = isinstance(error, TestbedError)
        say(News(kind="failed", text=str(error) if expected else f"{type(error).__name__}: {error}"))
        if not expected:
            raise
    finally:
        left = cluster.stop(keep_state=resume and not was_up)
        say(News(kind="stopped", left=left))
    return 1 if failed or left else 0


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 2) or (len(arguments) == 2 and arguments[1] != "--tied"):
        raise SystemExit("usage: python -m ces_testbed.background ROOT [--tied]")
    configure_logging("cluster")
    raise SystemExit(keep(Files(Path(arguments[0])), tied=len(arguments) == 2))


if __name__ == "__main__":
    main()
