"""Taking an agent away."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ces_client.installation.on_device.machine import (
    ENV,
    RECORD,
    RUN_S,
    SERVICE,
    STATE,
    UNIT,
    VENV,
    WIREGUARD_PORT,
    Fault,
    Machine,
    clear_others,
    lines_of,
)


def remove(machine: Machine, order: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Take away what an installation has made, and nothing that others have. Raises Fault."""
    record = machine.record()
    if not record:
        found = machine.installed()["foreign"]
        if found:
            raise Fault("foreign", ", ".join(found))
        return {"removed": []}
    if record.get("node") != order["node"]:
        raise Fault("another-node", str(record.get("node")))
    tell({"step": "stop"})
    if os.path.exists(machine.at(SERVICE)):
        machine.run("systemd", ["systemctl", "disable", "--now", UNIT])
    tell({"step": "network"})
    if record.get("network") == "tc" and os.path.exists(machine.at(VENV + "/bin/python")):
        _remove_network(machine, order["node"], record.get("port", WIREGUARD_PORT))
    left = _using(machine.at(VENV), machine.at(STATE))
    if left:
        raise Fault("in-use", "; ".join(left[:5]))
    tell({"step": "files"})
    removed = [path for path in (SERVICE, ENV, VENV, STATE) if machine.remove(path)]
    clear_others(machine)
    machine.run("systemd", ["systemctl", "daemon-reload"])
    machine.said(["systemctl", "reset-failed", UNIT])
    machine.remove(RECORD)
    for folder in (ENV, VENV):
        with suppress(OSError):  # other files are in it
            os.rmdir(os.path.dirname(machine.at(folder)))
    return {"removed": removed}


def _remove_network(machine: Machine, node: str, port: str) -> None:
    """What the agent has set up in the kernel, which outlives it."""
    keys = STATE + "/link-keys.json"
    command = [
        machine.at(VENV) + "/bin/python",
        "-I",
        "-m",
        "ces_edge_agent.dataplane",
        node,
        "ces",
        machine.at(keys),
        port,
    ]
    done = machine.call(
        command, input=b'{"remove": true}\n', stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_S
    )
    if done.returncode:
        raise Fault("network", "the data plane cannot be taken down", lines_of(done.stdout))


def _using(*folders: str) -> list[str]:
    """Programs that were started from one of the folders."""
    found = []
    for process in os.listdir("/proc"):
        if not process.isdigit() or int(process) == os.getpid():
            continue
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0") if word]
        except OSError:
            continue
        if words and any(words[0].startswith(folder + "/") for folder in folders):
            found.append(f"{process} {' '.join(words)[:120]}")
    return found
