"""The process of the shadow, beside the scheduler: begun again where it ends, and ended with the scheduler."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

import structlog

log = structlog.get_logger()
AGAIN_S = 60.0
"""Between two beginnings."""
GRACE_S = 5.0


class ShadowProcess:
    """A context in which the shadow runs. ``auto``: see :mod:`ces_scheduler.shadow`."""

    def __init__(self, folder: Path, *, auto: bool) -> None:
        self._command = [sys.executable, "-m", "ces_scheduler.shadow", str(folder), *(["--auto"] if auto else [])]
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = threading.Thread(target=self._keep, name="shadow-keeper", daemon=True)

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command)
        self._keeper.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._process is not None:
            self._process.terminate()
        self._keeper.join(2 * GRACE_S)

    def _keep(self) -> None:
        """Nobody decides later for want of a shadow: what goes wrong is logged, and tried again."""
        while self._process is not None:
            try:
                status = self._process.wait(None if not self._over.is_set() else GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                status = self._process.wait()
            if self._over.is_set():
                return
            log.error("the shadow has ended, and is begun again", status=status, after_s=AGAIN_S)
            if self._over.wait(AGAIN_S):
                return
            try:
                self._process = subprocess.Popen(self._command)
            except OSError as error:
                log.error("the shadow cannot be begun", error=str(error))
                return
