"""Keeps a cluster's services running: starts them, and starts again what has ended, as an init system would."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ces_testbed.processes import Known, Records, end

POLL_S = 0.1
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # before the next start, growing while a service keeps ending
STEADY_S = 10.0  # a service that ran this long starts again at once
STOP_S = 10.0


@dataclass(frozen=True)
class Service:
    """What to run. ``namespace``: the network namespace it lives in (None: this machine's)."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    log: Path
    namespace: str | None = None

    @property
    def argv(self) -> list[str]:
        enter = [sys.executable, "-m", "ces_testbed.enter", self.namespace] if self.namespace else []
        return [*enter, *self.command]


@dataclass
class _Running:
    service: Service
    process: subprocess.Popen[bytes] | None = None
    known: Known | None = None
    desired: bool = True
    since: float = 0.0
    quick_ends: int = 0
    next_start: float = 0.0
    starts: int = field(default=0)


class UnknownService(KeyError):
    """No service of this name belongs to the cluster."""


class Supervisor:
    """Its thread restarts what ends. All methods may be called from any thread. ``own``: the calling process."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.RLock()
        self._services: dict[str, _Running] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self.own = Known.of("supervisor", os.getpid())

    def add(self, service: Service) -> None:
        """Start a service and keep it running."""
        with self._lock:
            if service.name in self._services:
                raise ValueError(f"a service {service.name!r} runs already")
            self._services[service.name] = running = _Running(service)
            self._start(running)
            if not self._thread.is_alive():
                self._thread.start()

    def names(self) -> list[str]:
        with self._lock:
            return list(self._services)

    def pid(self, name: str) -> int | None:
        """None while it is down."""
        with self._lock:
            known = self._find(name).known
            return known.pid if known is not None and known.alive() else None

    def starts(self, name: str) -> int:
        """How often it was started so far."""
        with self._lock:
            return self._find(name).starts

    def kill(self, name: str, *, stay_down: bool = False) -> None:
        """End it as a power cut would. It starts again by itself unless told to stay down."""
        with self._lock:
            running = self._find(name)
            running.desired = not stay_down
            process = running.process
            if process is not None:
                process.kill()
                process.wait()

    def restart(self, name: str, env: Mapping[str, str] | None = None) -> None:
        """Start it with the state it has, ending it first (SIGTERM) where it runs. ``env`` is added to its environment
        for this one start; when it starts again by itself, it starts as ever."""
        with self._lock:
            running = self._find(name)
            running.desired = True
            if running.process is not None:
                _finish(running.process, STOP_S)
            self._start(running, env or {})

    def stop(self, *groups: list[str]) -> None:
        """End all services for good: group after group, each group at once; first SIGTERM, then SIGKILL."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            for group in groups:
                members = [self._services[name] for name in group if name in self._services]
                for running in members:
                    running.desired = False
                end(
                    [running.known for running in members if running.known],
                    [(signal.SIGTERM, STOP_S), (signal.SIGKILL, STOP_S)],
                )
                for running in members:
                    if running.process is not None:
                        running.process.wait()
            with contextlib.suppress(OSError):  # on a full disk: what is to be ended was ended
                self._records.write([])

    def _find(self, name: str) -> _Running:
        try:
            return self._services[name]
        except KeyError:
            raise UnknownService(f"no service {name!r}; there are {', '.join(self._services)}") from None

    def _start(self, running: _Running, extra: Mapping[str, str] = MappingProxyType({})) -> None:
        service = running.service
        service.log.parent.mkdir(parents=True, exist_ok=True)
        with service.log.open("ab") as log:
            # Each in a session of its own: a Ctrl-C on the terminal is for whoever started the cluster.
            running.process = subprocess.Popen(
                service.argv,
                env={**service.env, **extra},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        running.known = Known.of(service.name, running.process.pid)
        running.since = time.monotonic()
        running.starts += 1
        self._write()

    def _write(self) -> None:
        known = [running.known for running in self._services.values() if running.known is not None]
        self._records.write([*([self.own] if self.own else []), *known])

    def _watch(self) -> None:
        while not self._stop.wait(POLL_S):
            with self._lock:
                for running in self._services.values():
                    try:
                        self._look_after(running)
                    except OSError:  # no room for a log, or for another process: perhaps later
                        running.next_start = time.monotonic() + PAUSES_S[-1]

    def _look_after(self, running: _Running) -> None:
        now = time.monotonic()
        if running.process is not None and running.process.poll() is not None:
            running.process, running.known = None, None
            running.quick_ends = 0 if now - running.since > STEADY_S else running.quick_ends + 1
            pause_s = PAUSES_S[min(running.quick_ends, len(PAUSES_S)) - 1] if running.quick_ends else 0.0
            running.next_start = now + pause_s
        if running.process is None and running.desired and now >= running.next_start and not self._stop.is_set():
            self._start(running)


def _finish(process: subprocess.Popen[bytes], patience_s: float) -> None:
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
