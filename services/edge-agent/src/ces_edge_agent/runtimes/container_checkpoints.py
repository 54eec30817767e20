"""Volumes for the checkpoints of malleable jobs, one for each job, which its containers have one after the other."""

from __future__ import annotations

import contextlib
import io
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import IO, Any, Final

from docker.errors import APIError, NotFound
from docker.types import Mount

from ces_edge_agent.checkpoints.archive import Packed, Unfit, checked, is_complete, opened, repack
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.runtimes.container_disk import make_folder
from ces_edge_agent.runtimes.engine import Engine, answering
from ces_edge_agent.runtimes.names import check_name
from ces_edge_agent.runtimes.volume_helpers import volume_helper

_VOLUME: Final = "/checkpoints"
FOLDER: Final = f"{_VOLUME}/job"  # within the volume, since an engine leaves the volume itself to root
_ROLE: Final = "checkpoints"
# Says the newest name in the job's folder. An image may have no shell, so a container of the sandbox's looks.
_NEWEST: Final = """
cd "$1" 2>/dev/null || exit 0
for name in *; do
  case $name in [!A-Za-z0-9_]*|*[!A-Za-z0-9._=+@-]*|tmp*|*.tmp|*.part) continue;; esac
  [ -e "$name" ] && [ ! -L "$name" ] || continue
  if [ -z "$newest" ] || [ "$name" -nt "$newest" ]; then newest=$name; fi
done
echo "$newest"
"""
_PATIENCE_S: Final = 30


def mount(engine: Engine, job: str, limit: int | None) -> Mount:
    """The job's volume, made where there is none. ``limit``: bytes that a new one may hold, where the engine can limit
    it; None where it cannot. Raises APIError."""
    name = _volume_of(engine, job)
    engine.client.create_volume(
        name,
        driver="local",
        driver_opts=None if limit is None else {"size": str(limit)},
        labels={**engine.labels, "ces.role": _ROLE, "ces.job-id": job},
    )
    return Mount(_VOLUME, name, type="volume")


def _volume_of(engine: Engine, job: str) -> str:
    return engine.name(f"{_ROLE}.{check_name(job)}")


def discard(engine: Engine, job: str) -> None:
    """Remove the job's volume, of which no container may be left. Raises APIError."""
    with contextlib.suppress(NotFound):
        engine.client.remove_volume(_volume_of(engine, job))


def fill(client: Any, container: str, checkpoint: IO[bytes] | None, limit: int) -> None:
    """Make the job's folder in a container that has not started, and put a checkpoint into it, where one is given. It
    is any user's of the image: no other job's worker has the volume. Raises APIError, RuntimeUnavailable."""
    make_folder(client, container, FOLDER, 0o777)
    if checkpoint is None:
        return
    try:
        with tempfile.TemporaryFile() as content:
            checkpoint.seek(0)
            with (
                opened(checkpoint, "r|") as given,
                tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive,
            ):
                for entry, file in checked(given, limit):
                    entry.mode = 0o777 if file is None else 0o666
                    if "/" not in entry.name:  # else, by another node's clock, newer than what is written next
                        entry.mtime = int(time.time())
                    archive.addfile(entry, file)
            content.seek(0)
            client.put_archive(container, FOLDER, content)
    except (OSError, tarfile.TarError, Unfit) as error:
        raise RuntimeUnavailable(f"a checkpoint cannot be put into its volume: {error}") from error


@answering("checkpoints")
def pack(engine: Engine, image: str, job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
    """See the port. ``image``: of the sandbox, which the node has. Raises RuntimeUnavailable, Unfit."""
    volume = _volume_of(engine, job)
    try:
        engine.client.inspect_volume(volume)
    except NotFound:
        return None
    with _looking_into(engine, image, job, volume) as helper:
        engine.client.start(helper)
        engine.client.wait(helper, timeout=_PATIENCE_S)
        name = engine.client.logs(helper, stdout=True, stderr=False).decode(errors="replace").strip()
        if not is_complete(name):
            return None
        stream, status = engine.client.get_archive(helper, f"{FOLDER}/{name}")
        try:
            packed = Packed(name, f"{name} {status['mtime']} {status['size']}")
            if packed.mark == seen:
                return None
            repack(io.BufferedReader(_Stream(iter(stream))), into, limit)
        finally:
            stream.close()
    return packed


def _looking_into(engine: Engine, image: str, job: str, volume: str) -> AbstractContextManager[str]:
    """A container that has the volume, without the right to write to it."""
    mount = Mount(_VOLUME, volume, type="volume", read_only=True, no_copy=True)
    command = ["sh", "-c", _NEWEST, "sh", FOLDER]
    return volume_helper(engine, image, f"{_ROLE}.{check_name(job)}.look", _ROLE, command, mount)


class _Stream(io.RawIOBase):
    """What the engine sends, as a file."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._left = parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                self._left = next(self._parts)
            except StopIteration:
                return 0
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


@answering("checkpoints")
def keep(engine: Engine, jobs: Collection[str]) -> None:
    """Remove all others', but those that a container still has. Raises RuntimeUnavailable."""
    labels = [f"{name}={value}" for name, value in {**engine.labels, "ces.role": _ROLE}.items()]
    for volume in engine.client.volumes(filters={"label": labels})["Volumes"] or []:
        if volume["Labels"]["ces.job-id"] not in jobs:
            with contextlib.suppress(APIError):
                engine.client.remove_volume(volume["Name"])
