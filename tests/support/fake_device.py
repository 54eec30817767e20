"""A device behind a fake ``ssh`` on PATH, what it is like, and what was said to it."""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ces_client.installation.wheels import SentFile

KEY = "device ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINRxmXUGbes/wm4qlOZqCJOfM3BJ86PWxy3EE/uRRMWC"
FINGERPRINT = "SHA256:W5HqnJzX24aRCycZY8CC9ZzbxxfaEyc64UfB/PYyOfs"  # as ssh-keygen says
UNKNOWN = (
    "No ED25519 host key is known for device and you have requested strict checking.\nHost key verification failed.\n"
)
KNOWN = "root@device: Permission denied (publickey).\n"
CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Offending ED25519 key in /root/.ssh/known_hosts:1
Host key verification failed.
"""


class FakeDevice:
    """``facts``, ``refused``, ``programs``, ``says`` and ``journal`` of ``befall`` are read by ``fake_ssh``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "device"
        self.root.mkdir()
        self.scenario: dict[str, Any] = {"host_key": KEY, "host_says": KNOWN}
        self.befall()

    def befall(self, **what: Any) -> None:
        self.scenario |= what
        (self.folder / "scenario.json").write_text(json.dumps(self.scenario))

    def calls(self) -> list[list[str]]:
        """The words of each program that was called, ssh among them."""
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def files(self) -> dict[str, tuple[str, float]]:
        """All files and links, with their contents and times."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_symlink() or path.is_file():
                content = str(path.readlink()) if path.is_symlink() else path.read_text()
                found[str(path.relative_to(self.root))] = (content, path.lstat().st_mtime)
        return found


def sent_files(folder: Path) -> list[SentFile]:
    """Files such as an installation sends, which hold nothing but their names."""
    names = ("pip-1-py3-none-any.whl", "ces_edge_agent-1-py3-none-any.whl", "ces-agent.service")
    for name in names:
        (folder / name).write_text(name)
    return [SentFile(name, folder / name, len(name), sha256(name.encode()).hexdigest()) for name in names]


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """A device that can be installed on, and whose key ssh knows."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    program = Path(__file__).with_name("fake_ssh.py")
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {sys.executable} -S {program} "$@"\n')
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SSH", str(folder))
    return FakeDevice(folder)
