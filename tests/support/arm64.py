"""The scheduler on arm64: its packages installed into a root file system of that architecture, run by an emulator.

The root is made by ``deploy/ci/arm64.sh``. Nothing is registered with the kernel: the emulator is called by name, in a
mount namespace that ends with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from ces_testbed import services
from ces_testbed.supervisor import Service

REPOSITORY = Path(__file__).parents[2]
ROOT = Path(os.environ.get("CES_ARM64_ROOT") or "/var/cache/ces-arm64")
EMULATOR = "/usr/bin/qemu-aarch64-static"
PYTHON = "/usr/bin/python3.11"
PACKAGES = ("libs/ces_common", "libs/ces_core", "services/scheduler")
ENTER = """
set -eu
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/opt/ces/own"
mount -t tmpfs tmpfs "$1/run"
cp "$3" "$1/run/nats.creds"
cp "$4" "$1/run/authority.pem"
cp "$5" "$1/run/metrics.token"
root=$1
shift 5
exec chroot "$root" "$@"
"""


def missing() -> str | None:
    """Why nothing can be run for arm64 here; None where it can."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        return "needs Linux with unshare"
    if not (ROOT / ".made-from").exists():
        return f"no root file system for arm64 in {ROOT}: deploy/ci/arm64.sh makes one"
    return None


def install(folder: Path) -> None:
    """CES's own packages that the scheduler consists of, as pip installs them."""
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--root-user-action", "ignore"]
    into = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *into, *(str(REPOSITORY / package) for package in PACKAGES)], check=True)


def scheduler(layout: services.Layout, own: Path, settings: dict[str, str]) -> Service:
    """The scheduler of a cluster, on arm64, in the place of its own. ``own``: where :func:`install` put it."""
    usual = services.controller_service(layout, services.SCHEDULER)
    given = (layout.credentials(services.SCHEDULER), layout.files.authority, layout.files.metrics_token)
    enter = ("unshare", "--mount", "sh", "-c", ENTER, "sh", str(ROOT), str(own), *map(str, given))
    env = {
        "CES_NATS_CREDS": "/run/nats.creds",
        "CES_CA": "/run/authority.pem",
        "CES_METRICS_TOKEN_FILE": "/run/metrics.token",
        "PYTHONPATH": "/opt/ces/own:/opt/ces/lib",
        "PYTHONDONTWRITEBYTECODE": "1",  # the root is kept for other tests as it is
        "HOME": "/tmp",
    }
    return replace(
        usual,
        name="scheduler-arm64",
        command=(*enter, EMULATOR, PYTHON, "-m", "ces_scheduler"),
        env={**usual.env, **env, **settings},
        log=layout.files.log("scheduler-arm64"),
    )
