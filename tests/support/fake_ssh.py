"""Stands for ``ssh`` on PATH (see ``fake_device``): it goes to no device, but has the program that would be sent there
obey on a folder, with systemd and Python's environments as far as that program needs them.

``FAKE_SSH`` names the folder: ``scenario.json`` says what shall befall, ``calls.jsonl`` keeps each call's words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

HOME = Path(os.environ["FAKE_SSH"])
ROOT = HOME / "device"


def end(status: int, said: str = "") -> NoReturn:
    sys.stderr.write(said)
    sys.exit(status)


def option(words: list[str], name: str) -> str | None:
    """The first one counts, as for ssh."""
    return next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), None)


def keep_record(words: list[str]) -> None:
    with (HOME / "calls.jsonl").open("a") as file:
        file.write(json.dumps(words) + "\n")


class Programs:
    """Runs what the device's program runs."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario

    def __call__(self, command: list[str], **given: Any) -> subprocess.CompletedProcess[bytes]:
        keep_record(["device", *command])
        words = [os.path.basename(command[0]), *command[1:]]
        for start, status, said in self.scenario.get("programs", []):
            if " ".join(words).startswith(start):
                return subprocess.CompletedProcess(command, status, said.encode(), said.encode())
        return subprocess.CompletedProcess(command, 0, self._output(words).encode(), b"")

    def _output(self, words: list[str]) -> str:
        active, member = HOME / "active", ROOT / "var/lib/ces-agent/nats.creds"
        match words:
            case ["systemctl", "restart", _]:
                token = ROOT / "var/lib/ces-agent/join-token"
                active.touch()
                if token.exists() and not self.scenario.get("refused"):
                    (HOME / "token").write_text(token.read_text())
                    member.write_text("credentials")
                    token.unlink()
            case ["systemctl", "disable", *_] | ["systemctl", "stop", _]:
                active.unlink(missing_ok=True)
            case ["systemctl", "is-active", _]:
                if self.scenario.get("refused"):
                    return "failed\n"
                return "active\n" if active.exists() else "inactive\n"
            case ["systemctl", "is-enabled", _]:
                return "enabled\n"
            case ["journalctl", *_]:
                return "".join(f"{line}\n" for line in self.scenario.get("journal", []))
            case [_, "-m", "venv", "--without-pip", place]:
                Path(place, "bin").mkdir(parents=True)
                Path(place, "bin/python").touch()
            case [_, "-I", "-m", "ces_edge_agent", "--settings"]:
                known = ["CES_NODE", "CES_MANAGER_URL", "CES_JOIN_TOKEN_FILE", "CES_RUNTIME", "CES_NETWORK"]
                return json.dumps({"settings": [*known, "CES_HOST_ADDRESS", "CES_NODE_LABELS"], "wrong": []})
        return ""


def ask_for_tokens(machine: Any, order: dict[str, Any], stream: Any, tell: Any) -> dict[str, Any]:
    """As a device would do that wants to have many."""
    for _ in range(3):
        tell({"want": "token"})
    return {"since": 0.0}


def main() -> None:
    words = sys.argv[1:]
    keep_record(words)
    scenario = json.loads((HOME / "scenario.json").read_text())
    if "-G" in words:
        print(f"userknownhostsfile {scenario.get('known_hosts', HOME / 'known_hosts')} {HOME / 'known_hosts2'}")
        return
    if words[-1] == "true":
        file = option(words, "UserKnownHostsFile")
        if option(words, "StrictHostKeyChecking") == "accept-new" and file is not None:
            Path(file).write_text(scenario["host_key"] + "\n")
            end(255, "root@device: Permission denied (publickey).\n")
        end(255, scenario["host_says"])
    if "says" in scenario:
        end(*scenario["says"])
    source = sys.stdin.buffer
    program, start = source.read(int(source.readline())).decode(), "\nmodule.main()\n"
    assert program.endswith(start)
    exec(program.removesuffix(start), {})
    modules = {name.rpartition(".")[2]: module for name, module in sys.modules.items() if ".on_device." in name}
    server, real = modules["server"], modules["facts"].facts_of
    if scenario.get("greedy"):
        server.install = ask_for_tokens

    def told(machine: Any, order: dict[str, Any]) -> dict[str, Any]:
        (ROOT / "opt").mkdir(parents=True, exist_ok=True)
        good = {"root": True, "systemd": True, "python": [3, 11, 2], "lacks": [], "machine": "x86_64", "bits": 64}
        good |= {"glibc": [2, 36], "free": {"/opt": 1 << 40, "/var/lib": 1 << 40, "/etc": 1 << 40}}
        good |= {"unreached": {}, "address": "192.0.2.11", "modules": {}}
        return real(machine, {"reach": {}, "modules": []}) | good | scenario.get("facts", {})

    server.facts_of = told
    device = modules["machine"].Machine(str(ROOT), Programs(scenario), lambda _: None)
    sys.exit(server.serve(device, source, sys.stdout.buffer))


if __name__ == "__main__":
    main()
