"""What the data plane does when the manager asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from ces_common.bus.port import Message, RemoteError
from ces_common.messages.agent_queries import LinkProbe
from ces_edge_agent.ports import DataPlaneError, Network


def of(network: Network) -> dict[str, Callable[[Message], Awaitable[bytes]]]:
    """Operation -> what answers it, or raises RemoteError."""
    return {"probe": partial(_probe, network), "rotate-key": partial(_rotate_key, network)}


async def _probe(network: Network, message: Message) -> bytes:
    try:
        return (await network.probe(LinkProbe.model_validate_json(message.data))).encode()
    except DataPlaneError as error:
        raise RemoteError("not-probed", str(error)) from error


async def _rotate_key(network: Network, _: Message) -> bytes:
    try:
        await network.rotate_key()
    except DataPlaneError as error:
        raise RemoteError("not-rotated", str(error)) from error
    return b""
