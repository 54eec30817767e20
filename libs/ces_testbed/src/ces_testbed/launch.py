"""Starts a cluster in a process of its own, follows the news of that process, and ends it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from ces_testbed.processes import Records
from ces_testbed.progress import UNDER_WAY, News, read_news
from ces_testbed.spec import ClusterSpec, Files

LOOK_S = 0.05
GONE = News(kind="failed", text="the cluster's own process ended without a word")


class Background:
    """A cluster kept up by ``ces_testbed.background``. ``tied``: it ends when this process does."""

    def __init__(self, spec: ClusterSpec, files: Files, *, tied: bool) -> None:
        self.spec, self.files, self._tied = spec, files, tied
        self._process: subprocess.Popen[bytes] | None = None
        self._offset = 0

    def start(self) -> None:
        """Raises OSError where the cluster's folder cannot be written."""
        self.files.prepare()
        self.files.progress.unlink(missing_ok=True)
        self.files.spec.write_text(self.spec.model_dump_json(indent=2))
        command = [sys.executable, "-m", "ces_testbed.background", str(self.files.root)]
        with self.files.log("cluster").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--tied"] if self._tied else command,
                stdin=subprocess.PIPE if self._tied else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def news(self) -> Iterator[News]:
        """Yields its news as they come; ends after the one that says that it is ready, has failed, or has stopped."""
        while True:
            ended = self._process is not None and self._process.poll() is not None
            items, self._offset = read_news(self.files.progress, self._offset)
            for item in items:
                yield item
                if item.kind not in UNDER_WAY:
                    return
            if ended and not items:
                yield GONE
                return
            time.sleep(LOOK_S)

    def ask_to_end(self) -> None:
        """Ask the cluster to end. It cleans up, and its news say when that is done."""
        if self._process is None:
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        elif self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float) -> bool:
        """Wait for its process to end; False if that took longer than ``timeout_s``."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def is_up(files: Files) -> bool:
    """Whether a supervisor keeps the cluster up."""
    return bool(Records(files.processes).living("supervisor"))
