"""A nats-server process of a test's own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ces_common.nats_server import find_nats_server

START_S: Final = 20.0
STOP_S: Final = 10.0


class ServerFailed(RuntimeError):
    """The server could not be found, or did not start."""


def plain_config(store_dir: Path) -> str:
    """A server without any authentication, for tests of what needs none, on any free port."""
    return (
        f'host: "127.0.0.1"\nport: -1\nmax_payload: 8388608\njetstream {{ store_dir: {json.dumps(str(store_dir))} }}\n'
    )


def cluster_configs(directory: Path, size: int) -> list[str]:
    """Servers as ``plain_config`` makes one, which form a cluster."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(size)]
        ports = [each.getsockname()[1] for each in sockets]
    routes = json.dumps([f"nats://127.0.0.1:{port}" for port in ports])
    return [
        f"server_name: s{number}\n{plain_config(directory / f'store{number}')}"
        f"cluster {{ name: test, listen: '127.0.0.1:{port}', routes: {routes} }}\n"
        for number, port in enumerate(ports)
    ]


class NatsServer:
    """One nats-server that lives in ``directory`` (its configuration, log and ports file)."""

    def __init__(self, directory: Path, config: str) -> None:
        self._directory = directory
        self._config = directory / "nats-server.conf"
        self._log = directory / "nats-server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._url: str | None = None
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._config.write_text(config)

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFailed("nats-server is not running")
        return self._process.pid

    @property
    def url(self) -> str:
        """For clients, for example ``nats://127.0.0.1:4222``. The same after a restart."""
        if self._url is None:
            raise ServerFailed("nats-server was never started")
        return self._url

    def start(self) -> None:
        """Start and wait until clients can connect. Raises ServerFailed with the end of the log."""
        arguments = [str(find_nats_server()), "--config", str(self._config), "--ports_file_dir", str(self._directory)]
        if self._url is not None:
            arguments += ["--port", self._url.rpartition(":")[2]]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        ports_file = self._directory / f"nats-server_{self._process.pid}.ports"
        deadline = time.monotonic() + START_S
        while True:
            try:
                self._url = str(json.loads(ports_file.read_text())["nats"][0])
                return
            except (OSError, ValueError):
                pass
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise ServerFailed("nats-server did not start:\n" + self.log_tail())
            time.sleep(0.02)

    def stop(self) -> None:
        """Let it write everything down and end; killed if it does not within ten seconds."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_S)
        (self._directory / f"nats-server_{self._process.pid}.ports").unlink(missing_ok=True)
        self._process = None

    def log_tail(self, lines: int = 20) -> str:
        try:
            return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def __enter__(self) -> NatsServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
