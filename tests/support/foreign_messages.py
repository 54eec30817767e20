"""Somebody on the broker who holds a real credential and says what they like."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from ces_testbed.services import Layout

Said = tuple[str, bytes, dict[str, str] | None]  # subject, payload, headers


def say(layout: Layout, credentials: Path, name: str, messages: Sequence[Said]) -> None:
    """Publish as ``name``, with that identity's own rights, and wait until the broker has it all."""

    async def talk() -> None:
        client = await connected(layout, credentials, name)
        for subject, payload, headers in messages:
            await client.publish(subject, payload, headers=headers)
        await client.flush()
        await client.close()

    asyncio.run(talk())


async def connected(layout: Layout, credentials: Path, name: str) -> Client:
    """A client of a local cluster's NATS, with that identity's own rights."""
    return await nats.connect(
        layout.nats_url,
        user_credentials=str(credentials),
        inbox_prefix=f"_INBOX.{name}".encode(),
        tls=layout.tls(),
        tls_handshake_first=True,
    )


def stored(layout: Layout, credentials: Path, name: str, stream: str) -> int:
    """How many messages a stream holds; 0 where there is no such stream."""

    async def ask() -> int:
        client = await connected(layout, credentials, name)
        try:
            info = await client.jetstream().stream_info(stream)
            return info.state.messages
        except NotFoundError:
            return 0
        finally:
            await client.close()

    return asyncio.run(ask())


def event(kind: str, subject: str, data: dict[str, Any], event_id: str) -> bytes:
    """A CloudEvent as it goes over the wire, written by hand."""
    envelope = {
        "specversion": "1.0",
        "id": event_id,
        "source": "a-stranger",
        "type": f"ces.v1.{kind}",
        "subject": subject,
        "time": "2020-01-01T00:00:00Z",
        "data": data,
    }
    return json.dumps(envelope).encode()
