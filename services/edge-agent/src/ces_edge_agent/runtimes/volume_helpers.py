"""Containers of the sandbox's image that stand in for the agent where it cannot reach: within a volume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import requests
from docker.errors import DockerException
from docker.types import Mount

from ces_edge_agent.runtimes.engine import Engine
from ces_edge_agent.runtimes.pause_containers import HARDENED, SMALL


@contextmanager
def volume_helper(
    engine: Engine, image: str, key: str, role: str, command: Sequence[str], mount: Mount, **more: Any
) -> Iterator[str]:
    """The id of a container with that volume, without a network, that was not started; it is gone afterwards. ``key``
    names it among the node's; one of an attempt that was cut off is removed first. Raises APIError."""
    former = engine.find(key)
    if former is not None:
        engine.delete(former["Id"], force=True)
    helper = engine.client.create_container(
        image,
        [*command],
        name=engine.name(key),
        user="0:0",
        labels={**engine.labels, "ces.role": role},
        host_config=engine.client.create_host_config(
            network_mode="none",
            read_only=True,
            mounts=[mount],
            **SMALL,
            **HARDENED,
        ),
        **more,
    )["Id"]
    try:
        yield helper
    finally:
        with suppress(DockerException, requests.RequestException):  # what it was for is done; the next one removes it
            engine.delete(helper, force=True)
