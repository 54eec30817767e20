"""Secrets of containers, in memory. A volume that the engine keeps in memory is there as long as a running container
has it, and only a running one can be given files there. So a helper holds it for the moment in which the files are
written and the worker starts; afterwards it lives and ends with the worker, whether or not an agent runs.

The helper reads what the agent sends it, which is nothing, and ends soon after the connection, that is, with the agent.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from docker.types import DriverConfig, Mount

from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.runtimes.engine import Engine
from ces_edge_agent.runtimes.volume_helpers import volume_helper

FOLDER = "/run/secrets"
_IN_MEMORY = {"type": "tmpfs", "device": "tmpfs", "o": "size=2m,mode=0555,nosuid,nodev,noexec"}
_ROLE = "secrets"
# Ends ten seconds after its input, and after two minutes where that stays open: longer than the engine may take. A busy
# engine may end the input as soon as it has started the helper.
_HELPER = "trap exit TERM; exec 3<&0; (read line <&3; sleep 10; kill $$) & sleep 120 & wait $!"


def mount() -> Mount:
    """For the worker's container: a volume of its own, which goes with it."""
    in_memory = DriverConfig("local", _IN_MEMORY)
    return Mount(FOLDER, None, type="volume", no_copy=True, driver_config=in_memory)


@contextmanager
def filled(
    engine: Engine, image: str, key: str, mounts: Sequence[Mapping[str, Any]], secrets: Mapping[str, bytes]
) -> Iterator[None]:
    """While this lasts, the secrets lie in the volume of a container that has not started; ``mounts``: its own, as the
    engine describes them. ``image``: of the sandbox, which the node has. Raises APIError, and RuntimeUnavailable where
    the helper has ended and taken them with it."""
    volume = next(mount["Name"] for mount in mounts if mount["Destination"] == FOLDER)
    place, command = Mount(FOLDER, volume, type="volume", no_copy=True), ["sh", "-c", _HELPER]
    with (
        volume_helper(engine, image, f"{key}.secrets", _ROLE, command, place, stdin_open=True) as helper,
        engine.feeding(helper),
    ):
        engine.client.start(helper)
        engine.client.put_archive(helper, FOLDER, _archive(secrets))
        if not engine.client.inspect_container(helper)["State"]["Running"]:
            raise RuntimeUnavailable(f"worker {key}: what holds its secrets until it starts has ended")
        yield


def discard(engine: Engine) -> None:
    """Helpers whose agent ended before them."""
    for entry in engine.list(_ROLE):
        engine.delete(entry["Id"], force=True)


def _archive(secrets: Mapping[str, bytes]) -> bytes:
    """Readable for whichever user the image names: nobody but the worker has the volume."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, value in secrets.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o444, len(value)
            archive.addfile(entry, io.BytesIO(value))
    return content.getvalue()
