"""What a device is like on which an agent can run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, put_on_path

from ces_client.installation.checks import Facts

NOTHING = {
    "node": None,
    "digest": None,
    "settings": None,
    "foreign": [],
    "intact": False,
    "member": False,
    "active": False,
}


@pytest.fixture
def facts() -> Callable[..., Facts]:
    def made(installed: dict[str, Any] | None = None, **more: Any) -> Facts:
        told = {"python": [3, 11, 2], "lacks": [], "machine": "x86_64", "bits": 64, "glibc": [2, 36], "root": True}
        told |= {"free": {"/opt": 1 << 40, "/var/lib": 1 << 40, "/etc": 1 << 40}, "clock": 0.0, "systemd": True}
        told |= {"unreached": {}, "address": "192.0.2.11", "modules": {}, "installed": NOTHING | (installed or {})}
        return Facts.model_validate(told | more)

    return made


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return put_on_path(tmp_path, monkeypatch)
