"""A container's output, copied to its allocation's log file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import requests
from docker.errors import DockerException

from ces_edge_agent.runtimes import logfile

_CLOSE_PATIENCE_S = 10.0


class Follower:
    """Copies one container's output to the end of a log file, until it ends or the follower is closed.

    ``base``: the file's length when the container was made. What lies behind it was copied from this container
    before, and is skipped: so an agent that starts again neither loses nor repeats anything.
    """

    def __init__(self, client: Any, container: str, path: Path, base: int) -> None:
        self._client = client
        self._container = container
        self._path = path
        self._base = base
        self._stream: Any = None
        self._closed = False
        self.complete = False
        """The container has ended, and all that it wrote is in the file."""
        self._thread = threading.Thread(target=self._run, name=f"log-{container[:12]}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()
        self.join(_CLOSE_PATIENCE_S)

    def _run(self) -> None:
        log = logfile.LogFile(str(self._path), logfile.LIMIT)
        try:
            self._copy(log, follow=True)
            # The stream also ends where the engine does: only the engine can say that there is no more. And it may end
            # before the last words of a program that has ended: the engine has them by now.
            if not self._closed and not self._client.inspect_container(self._container)["State"]["Running"]:
                self._copy(log, follow=False)
                self.complete = not self._closed
        except (DockerException, requests.RequestException, OSError):
            return  # the next look at the container starts another follower
        finally:
            log.close()

    def _copy(self, log: logfile.LogFile, follow: bool) -> None:
        skip = max(0, self._path.stat().st_size - self._base)
        self._stream = self._client.logs(self._container, stream=True, follow=follow)
        if self._closed:  # while the engine was thinking
            self._stream.close()
        for chunk in self._stream:
            if self._closed:
                return
            log.write(chunk[skip:])
            skip = max(0, skip - len(chunk))
