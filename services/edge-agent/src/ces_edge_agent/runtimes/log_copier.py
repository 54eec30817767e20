"""Copies a container's output to its allocation's log."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import requests
from docker.errors import DockerException

from ces_edge_agent.runtimes.log_file import LIMIT, LogFile

_CLOSE_PATIENCE_S = 10.0


class LogCopier:
    """Appends one container's output to a log in a thread, until the container ends or the copier is closed.

    ``base``: end of the log when the container was created. What the log has beyond that was copied from this container
    before and is skipped, so that an agent that starts again neither loses nor repeats output.
    """

    def __init__(self, client: Any, container: str, path: Path, base: int) -> None:
        self._client = client
        self._container = container
        self._path = path
        self._base = base
        self._stream: Any = None
        self._closed = False
        self.complete = False
        """The container has ended, and all of its output is in the log."""
        self._thread = threading.Thread(target=self._run, name=f"log-{container[:12]}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def finish(self, timeout_s: float) -> None:
        """Write no more to the log after this, whatever of the container's output is still missing there: another
        container's begins at its end."""
        self.join(timeout_s)
        if self.alive:
            self.close()
        self.complete = True

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()
        self.join(_CLOSE_PATIENCE_S)

    def _run(self) -> None:
        log = LogFile(str(self._path), LIMIT)
        try:
            self._copy(log, follow=True)
            # The stream also ends when the engine goes down, and sometimes before the last output of a program that
            # has just ended. So ask the engine whether the container has ended, and read the rest.
            if not self._closed and not self._client.inspect_container(self._container)["State"]["Running"]:
                self._copy(log, follow=False)
                self.complete = not self._closed
        except (DockerException, requests.RequestException, OSError):
            return  # the next look at the container starts another copier
        finally:
            log.close()

    def _copy(self, log: LogFile, follow: bool) -> None:
        skip = max(0, log.end - self._base)
        self._stream = self._client.logs(self._container, stream=True, follow=follow)
        if self._closed:  # closed while the request was under way
            self._stream.close()
        for chunk in self._stream:
            if self._closed:
                return
            log.write(chunk[skip:])
            skip = max(0, skip - len(chunk))


class LogCopiers:
    """The copiers of a node's containers, one of each, by the key of its worker. Threads may call at the same time: two
    copiers would write everything twice."""

    def __init__(self) -> None:
        self._copiers: dict[str, LogCopier] = {}
        self._lock = threading.Lock()

    def follow(self, key: str, client: Any, container: str, path: Path, base: int) -> None:
        """Have the container's output copied, unless that is under way or done. See :class:`LogCopier`."""
        with self._lock:
            copier = self._copiers.get(key)
            if copier is None or not (copier.alive or copier.complete):
                self._copiers[key] = LogCopier(client, container, path, base)

    def finish(self, allocation: str, timeout_s: float) -> None:
        """No earlier incarnation of the allocation writes any more to its log."""
        with self._lock:
            earlier = [copier for key, copier in self._copiers.items() if key.startswith(f"{allocation}.")]
        for copier in earlier:
            copier.finish(timeout_s)

    def end(self, key: str, timeout_s: float) -> None:
        """The container is about to be removed."""
        copier = self._copiers.get(key)
        if copier is not None:
            copier.join(timeout_s)
            copier.close()
            self._copiers.pop(key, None)

    def close(self) -> None:
        """Containers go on."""
        with self._lock:
            copiers = list(self._copiers.values())
            self._copiers.clear()
        for copier in copiers:
            copier.close()
