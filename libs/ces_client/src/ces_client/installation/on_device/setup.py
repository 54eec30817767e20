"""Putting an agent in place."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import IO, Any

from ces_client.installation.on_device.machine import (
    ENV,
    MEMBER,
    RECORD,
    RUN_S,
    SERVICE,
    STATE,
    TOKEN,
    UNIT,
    VENV,
    WIREGUARD_PORT,
    Fault,
    Machine,
    clear_others,
    lines_of,
    sha,
)

NO_SPACE = 28  # errno.ENOSPC
TOKEN_BYTES = 4096
LOOK_S = 0.25


def install(
    machine: Machine, order: dict[str, Any], stream: IO[bytes], tell: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Bring the device to what the order says. ``stream``: files and token; ``tell``: sends a line. Raises Fault."""
    before = machine.installed()
    if before["foreign"]:
        raise Fault("foreign", ", ".join(before["foreign"]))
    if before["node"] not in (None, order["node"]):
        raise Fault("another-node", str(before["node"]))
    os.umask(0o022)
    folder = machine.at(os.path.dirname(VENV))
    os.makedirs(folder, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix=".installing-", dir=folder)
    try:
        tell({"step": "files"})
        _receive(order["files"], scratch, stream)
        record = {
            "node": order["node"],
            "digest": order["digest"],
            "settings": before["settings"],  # with which it has joined
            "network": order["settings"].get("CES_NETWORK"),
            "port": order["settings"].get("CES_WIREGUARD_PORT", WIREGUARD_PORT),
            "files": {},
            "complete": False,
        }
        machine.write(RECORD, json.dumps(record), 0o600)
        tell({"step": "environment"})
        fresh = VENV + "-" + order["digest"][:12]
        _environment(machine, fresh, scratch)
        tell({"step": "settings"})
        _check_settings(machine, fresh, order["settings"])
        tell({"step": "unit"})
        _put_in_place(machine, fresh, scratch, order)
        if before["member"] and before["settings"] != order["settings_digest"]:
            os.unlink(machine.at(MEMBER))  # the key stays: the node joins again, and says what has changed
        since = time.time()
        if not os.path.exists(machine.at(MEMBER)):
            tell({"step": "token"})
            _take_token(machine, stream, tell)
        tell({"step": "start"})
        machine.run("systemd", ["systemctl", "enable", UNIT])
        machine.run("systemd", ["systemctl", "restart", UNIT])
        tell({"step": "join"})
        _await_joined(machine, since, order["wait_s"])
        files = {path: sha(machine.at(path)) for path in (SERVICE, ENV)}
        record.update(complete=True, files=files, settings=order["settings_digest"])
        machine.write(RECORD, json.dumps(record), 0o600)
        clear_others(machine, fresh)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Fault("disk" if error.errno == NO_SPACE else "device", f"{error.filename}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        machine.remove(TOKEN, unless=MEMBER)  # what nobody waits for any more admits nobody
    return {"since": since}


def _receive(files: list[dict[str, Any]], scratch: str, stream: IO[bytes]) -> None:
    for each in files:
        name, left, digest = os.path.basename(each["name"]), each["size"], hashlib.sha256()
        with open(os.path.join(scratch, name), "wb") as file:
            while left:
                part = stream.read(min(left, 1 << 20))
                if not part:
                    raise Fault("transfer", f"the connection ended within {name}, {left} bytes before its end")
                file.write(part)
                digest.update(part)
                left -= len(part)
        if digest.hexdigest() != each["sha256"]:
            raise Fault("transfer", f"{name} arrived changed")


def _environment(machine: Machine, fresh: str, scratch: str) -> None:
    shutil.rmtree(machine.at(fresh), ignore_errors=True)
    machine.run("environment", [sys.executable, "-m", "venv", "--without-pip", machine.at(fresh)])
    wheels = sorted(os.path.join(scratch, name) for name in os.listdir(scratch) if name.endswith(".whl"))
    pip = next(path for path in wheels if os.path.basename(path).startswith("pip-"))  # wheels run as they are
    options = [
        "--isolated",
        "install",
        "--no-index",
        "--no-deps",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--quiet",
    ]
    program = machine.at(fresh) + "/bin/python"
    rest = [path for path in wheels if path != pip]
    machine.run("environment", [program, os.path.join(pip, "pip"), *options, "--root-user-action=ignore", *rest])


def _check_settings(machine: Machine, fresh: str, settings: dict[str, str]) -> None:
    """As the agent itself judges them."""
    environment = dict(settings, PATH=os.environ.get("PATH", os.defpath), LANG="C.UTF-8")
    program = machine.at(fresh) + "/bin/python"
    done = machine.call(
        [program, "-I", "-m", "ces_edge_agent", "--settings"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=RUN_S, env=environment,
    )  # fmt: skip
    if done.returncode:
        raise Fault("environment", "the agent does not start", lines_of(done.stderr))
    told = json.loads(done.stdout.decode())
    unknown = [f"{name}: the agent has no such setting" for name in sorted(set(settings) - set(told["settings"]))]
    if unknown or told["wrong"]:
        raise Fault("settings", "; ".join(unknown + told["wrong"]))


def _put_in_place(machine: Machine, fresh: str, scratch: str, order: dict[str, Any]) -> None:
    machine.write(ENV, order["env"], 0o600)
    with open(os.path.join(scratch, UNIT + ".service")) as file:
        machine.write(SERVICE, file.read(), 0o644)
    link = machine.at(VENV) + ".new"
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(os.path.basename(fresh), link)
    os.replace(link, machine.at(VENV))
    os.makedirs(machine.at(STATE), mode=0o700, exist_ok=True)
    os.chmod(machine.at(STATE), 0o700)
    machine.run("systemd", ["systemctl", "daemon-reload"])


def _take_token(machine: Machine, stream: IO[bytes], tell: Callable[[dict[str, Any]], None]) -> None:
    tell({"want": "token"})
    token = stream.readline(TOKEN_BYTES)
    if not token.endswith(b"\n"):
        raise Fault("transfer", "the connection ended before the token")
    machine.write(TOKEN, token.decode(), 0o600)


def _await_joined(machine: Machine, since: float, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        state = machine.systemctl("is-active")
        if os.path.exists(machine.at(MEMBER)) and state == "active":
            return
        if state == "failed" or time.monotonic() > end:
            log = machine.log(since)
            machine.said(["systemctl", "stop", UNIT])
            why = "the agent has ended" if state == "failed" else f"the agent has not joined within {wait_s:g} s"
            raise Fault("join", why, log)
        machine.wait(LOOK_S)
