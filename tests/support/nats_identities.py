"""A broker that lets nobody do more than they may, and what clients of any make could try on it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import nats
from nats.aio.client import Client, RawCredentials
from nats_process import NatsServer

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import Message
from ces_common.natsauth import Trust, credentials_file, jwt, new_user_key
from ces_common.natsauth.permissions import Permissions

SOON = 60.0  # patience on a busy machine, not a wait
KV = subjects.DESIRED_STREAM
Enter = Callable[..., Awaitable[NatsBus]]  # connects as somebody: role, and name where it is another


@dataclass
class Cluster:
    trust: Trust
    server: NatsServer


async def administrator(url: str, trust: Trust) -> Client:
    """A client whom CES itself never makes: with every right in its account, signed by the account's own seed."""
    key = new_user_key()
    seed = (trust.directory / "account.seed").read_text().strip()
    everything = Permissions(publish=(">",), subscribe=(">",), answers=True)
    user = jwt.system_user(seed, key.public, "administrator", everything)
    return await nats.connect(url, user_credentials=RawCredentials(credentials_file(user, key.seed)))


async def ask(bus: NatsBus, subject: str, body: object = "") -> bytes:
    """A request to the broker's own interface, as a client of any make could send it."""
    data = json.dumps(body).encode() if body != "" else b""
    return (await bus._connection.request(subject, data, None, 2.0)).data


async def send_and_see(
    bus: NatsBus, subject: str, data: bytes = b"x", reply: str = "", headers: dict[str, str] | None = None
) -> bool:
    """Publish, and whether the broker let it through."""
    with bus._connection.refusal("publish", subject) as refused:
        await bus._connection.publish(subject, data, headers, reply=reply)
        await bus._connection.flush()
        return not refused.done()


async def nothing(message: Message) -> None:
    """A handler for what must not come, or does not matter."""
