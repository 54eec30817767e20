"""Containers that keep too much on disk where the engine cannot limit it: measured one after the other, and ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import structlog
from docker.errors import APIError

from ces_edge_agent import linux
from ces_edge_agent.files import write_atomically
from ces_edge_agent.runtimes import container_secrets
from ces_edge_agent.runtimes.disk_meter import DiskMeter
from ces_edge_agent.runtimes.engine import Engine

log = structlog.get_logger()
_HOSTS_ROOT = "/proc/1/root"  # as an agent in a container sees it that shares the host's process ids


class ContainerMeter:
    """``limit``: bytes that may lie in all volumes of a worker together. ``notes``: a folder, where it is written down
    who was ended for that."""

    def __init__(self, engine: Engine, notes: Path, limit: int) -> None:
        self._engine, self._notes, self._limit = engine, notes, limit
        self._root: str | None = None
        self._meters: dict[str, DiskMeter] = {}
        self._last = ""

    def open(self) -> bool:
        """Whether this agent can see what lies in the engine's volumes. Raises APIError."""
        self._notes.mkdir(parents=True, exist_ok=True, mode=0o700)
        volumes = f"{self._engine.client.info()['DockerRootDir']}/volumes"
        shared = self._engine.shares_kernel()
        seen = (root for root in ("", _HOSTS_ROOT) if shared and os.access(f"{root}{volumes}", os.R_OK | os.X_OK))
        self._root = next(seen, None)
        return self._root is not None

    def look(self, running: Mapping[str, str]) -> None:
        """At one of the workers that run, the next in turn; ``running``: key -> container. Raises APIError."""
        self._meters = {key: meter for key, meter in self._meters.items() if key in running}
        if self._root is None or not running:
            return
        keys = sorted(running)
        self._last = key = next((each for each in keys if each > self._last), keys[0])
        if key not in self._meters:
            self._meters[key] = self._meter(running[key], self._root)
        problem = self._meters[key].look()
        if problem is not None:
            self._end(key, running[key], problem)

    def _meter(self, container: str, root: str) -> DiskMeter:
        mounts = self._engine.client.inspect_container(container)["Mounts"]
        kept = [each for each in mounts if each["Type"] == "volume" and each["Destination"] != container_secrets.FOLDER]

        def processes() -> list[int]:
            pid = self._engine.pid(container)
            return [pid, *linux.descendants(pid)] if pid else []

        return DiskMeter([f"{root}{each['Source']}" for each in kept], self._limit, processes)

    def _end(self, key: str, container: str, reason: str) -> None:
        log.warning("a worker is ended", worker=key, reason=reason)
        with suppress(OSError):  # the disk is what it has filled: it ends without a reason then
            write_atomically(self._notes / key, reason)
        with suppress(APIError):  # it has ended by itself
            self._engine.client.kill(container, "SIGKILL")

    def reason(self, key: str) -> str | None:
        """Why a worker was ended, if it was for what it kept."""
        try:
            return (self._notes / key).read_text()
        except OSError:
            return None

    def forget(self, key: str) -> None:
        """It is removed."""
        (self._notes / key).unlink(missing_ok=True)
