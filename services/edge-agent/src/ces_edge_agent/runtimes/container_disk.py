"""What a worker's container can write: its folder and /tmp, each up to a limit. Its root is read-only.

The folder is the image's working directory, as it comes with the image; where an image names none, an empty one that
any user of the image may write.
"""

from __future__ import annotations

import io
import os
import tarfile
from typing import Any

from docker.errors import APIError
from docker.types import DriverConfig, Mount, Ulimit

_VOLUME = "/worker"
FOLDER = f"{_VOLUME}/home"  # within the volume, since an engine leaves the volume itself to root
_TMP = "/tmp"  # noqa: S108


def folder_of(image: dict[str, Any]) -> str:
    """The folder of workers from an image, which the engine has described."""
    named = (image["Config"] or {}).get("WorkingDir") or "/"
    return FOLDER if named == "/" else str(named)


def options(folder: str, memory: int, disk: int, limited: bool) -> dict[str, Any]:
    """For the engine: mounts for a worker with so much memory. ``disk``: bytes of its folder, where the engine can
    limit it, and of any one file. /tmp is memory of the worker's own; it takes half of it at most, so that a program
    that fills it is told so and not killed."""
    limit = DriverConfig("local", {"size": str(disk)}) if limited else None
    volume = Mount(_VOLUME if folder == FOLDER else folder, None, type="volume", driver_config=limit)
    found: dict[str, Any] = {
        "read_only": True,
        "mounts": [volume],
        "ulimits": [Ulimit(name="fsize", soft=disk, hard=disk)],
    }
    if folder != _TMP:
        found["tmpfs"] = {_TMP: f"rw,exec,nosuid,nodev,mode=1777,size={memory // 2}"}
    return found


def make_folder(client: Any, container: str, folder: str = FOLDER, mode: int = 0o1777) -> None:
    """Make a folder of a volume, for any user of the image, in a container that has not started. Any number of
    times."""
    volume, name = os.path.split(folder)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        archive.addfile(entry)
    client.put_archive(container, volume, content.getvalue())


def has_quota(client: Any) -> bool:
    """Whether the engine's storage can limit a volume's size, as overlay2 on XFS with project quotas can."""
    try:
        probe = client.create_volume(driver="local", driver_opts={"size": "1m"})
    except APIError as error:
        if error.status_code is not None and error.status_code < 500:
            return False
        raise
    client.remove_volume(probe["Name"])
    return True
