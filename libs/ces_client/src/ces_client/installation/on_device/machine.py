"""The device: files below a root, programs, and the record of what was installed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

UNIT = "ces-agent"
SERVICE = "/etc/systemd/system/ces-agent.service"
ENV = "/etc/ces/agent.env"
RECORD = "/etc/ces/installed.json"
VENV = "/opt/ces/venv"  # a link to the one in use, so that another takes its place at once
STATE = "/var/lib/ces-agent"
MEMBER = STATE + "/nats.creds"
TOKEN = STATE + "/join-token"
RUN_S = 300.0
LOG_LINES = 12
WIREGUARD_PORT = "51872"  # where the settings name none
LONGEST = 500  # characters of what is said or logged, a line


class Fault(Exception):
    """Ends the work; ``name`` is one of those that ``faults`` knows a remedy for."""

    def __init__(self, name: str, said: str, log: Iterable[str] = ()) -> None:
        super().__init__(said)
        self.name, self.said, self.log = name, said, list(log)


class Machine:
    """``root``: what stands for ``/``; ``call``: runs a program as ``subprocess.run`` does."""

    def __init__(
        self,
        root: str = "/",
        call: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.root, self.call, self.wait = root, call, wait

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def installed(self) -> dict[str, Any]:
        """What an earlier run has left, and whether that is whole; ``foreign``: files that none has made."""
        record = self.record()
        there = [path for path in (VENV, SERVICE, ENV, STATE) if os.path.lexists(self.at(path))]
        found = {
            "node": record.get("node"),
            "digest": record.get("digest"),
            "settings": record.get("settings"),
            "network": record.get("network"),
            "foreign": [] if record else there,
            "intact": bool(record.get("complete"))
            and all(sha(self.at(path)) == was for path, was in record["files"].items()),
            "member": os.path.exists(self.at(MEMBER)),
            "active": False,
        }
        if record:
            runs = os.path.exists(self.at(VENV + "/bin/python"))
            found["active"] = (
                runs and self.systemctl("is-active") == "active" and self.systemctl("is-enabled") == "enabled"
            )
        return found

    def record(self) -> dict[str, Any]:
        try:
            with open(self.at(RECORD)) as file:
                found = json.load(file)
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def said(self, command: list[str]) -> str | None:
        """None where the program succeeds, else what it said last."""
        try:
            done = self.call(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=RUN_S
            )
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        except subprocess.TimeoutExpired:
            return f"{command[0]} did not end within {RUN_S:g} s"
        if done.returncode == 0:
            return None
        lines = lines_of(done.stdout)
        return lines[-1] if lines else f"{command[0]} ended with status {done.returncode}"

    def run(self, fault: str, command: list[str]) -> None:
        """Raises Fault, of that name or of a full disk."""
        said = self.said(command)
        if said is not None:
            raise Fault("disk" if "No space left" in said else fault, said)

    def systemctl(self, what: str) -> str:
        done = self.call(
            ["systemctl", what, UNIT],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=RUN_S,
        )
        return done.stdout.decode(errors="replace").strip()

    def log(self, since: float) -> list[str]:
        done = self.call(
            ["journalctl", "-u", UNIT, "-o", "cat", "--no-pager", "-n", str(LOG_LINES), "--since", f"@{since:.0f}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=RUN_S,
        )  # fmt: skip
        return [line for line in lines_of(done.stdout) if not line.startswith("-- ")]

    def write(self, path: str, text: str, mode: int) -> None:
        """As a whole or not at all; nobody else can open it before its mode is right."""
        there = self.at(path)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=os.path.dirname(there), prefix=".ces-")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(fresh, mode)
        os.replace(fresh, there)

    def remove(self, path: str, unless: str | None = None) -> bool:
        there = self.at(path)
        if not os.path.lexists(there) or (unless and os.path.exists(self.at(unless))):
            return False
        if os.path.isdir(there) and not os.path.islink(there):
            shutil.rmtree(there)
        else:
            os.unlink(there)
        return True


def sha(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def lines_of(output: bytes) -> list[str]:
    return [line[:LONGEST] for line in output.decode(errors="replace").splitlines() if line.strip()][-LOG_LINES:]


def clear_others(machine: Machine, kept: str = "") -> None:
    """Remove all environments but one."""
    folder = machine.at(os.path.dirname(VENV))
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith("venv-") and name != os.path.basename(kept):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
