"""What the rogue tries without NATS: requests to the API, and connections that say nothing or not enough."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import httpx

from ces_common.messages.membership import JoinRequest, RenewRequest
from ces_common.natsauth import SIGNATURE, signature_of
from ces_common.natsauth.signed_requests import Purpose
from ces_experiments.security.tally import Tally
from ces_experiments.security.target import Target

METHODS: Final = ("get", "post", "put", "delete")
OPEN: Final = ("/v1/authority",)  # whom to trust, which who joins must know before
PART: Final = re.compile(r"\{\w+\}")  # of an address
JOINING: Final = ("/v1/nodes/join", "/v1/nodes/renew")
CONNECTIONS: Final = 100  # to each of the two, at once
HOLD_S: Final = 2.0
HALF_A_HELLO: Final = bytes.fromhex("16030102000100")  # the beginning of a handshake


async def without_rights(http: httpx.AsyncClient, target: Target, chance: random.Random) -> Tally:
    """Every address without a token, with a made-up one, and with the node's credential as one. Raises
    httpx.TransportError."""
    tally = Tally()
    described = (await http.get("/openapi.json")).json()["paths"]
    for path, operations in described.items():
        if path in (*OPEN, *JOINING):
            continue
        where = PART.sub(target.others[0], path)
        for method in METHODS:
            if method in operations:
                for headers in (
                    {},
                    *({"Authorization": f"Bearer {each}"} for each in (secrets.token_urlsafe(32), target.jwt)),
                ):
                    answer = await http.request(method, where, headers=headers)
                    _count(tally, answer)
    return tally


async def joining(http: httpx.AsyncClient, target: Target, chance: random.Random) -> Tally:
    """Join and renew in others' names, with the node's key and its signature. Raises httpx.TransportError."""
    tally = Tally()
    for name in target.others:
        join = JoinRequest(token=secrets.token_urlsafe(32), name=name, public_key=target.public_key, cpu=1, memory=1)
        _count(tally, await _signed(http, target, "join", join.model_dump_json().encode()))
        renew = RenewRequest(name=name, public_key=target.public_key)
        _count(tally, await _signed(http, target, "renew", renew.model_dump_json().encode()))
    return tally


async def _signed(http: httpx.AsyncClient, target: Target, purpose: Purpose, body: bytes) -> httpx.Response:
    headers = {"Content-Type": "application/json", SIGNATURE: signature_of(target.seed, purpose, body)}
    return await http.post(f"/v1/nodes/{purpose}", content=body, headers=headers)


def _count(tally: Tally, answer: httpx.Response) -> None:
    tally.tries += 1
    if answer.is_success or answer.is_server_error:
        tally.answered += 1
    else:
        tally.refused += 1


async def silent_connections(target: Target, chance: random.Random) -> Tally:
    """Many at once that say nothing."""
    return await _flood(target, b"")


async def slow_handshakes(target: Target, chance: random.Random) -> Tally:
    """Many at once that begin to agree on TLS, and never go on."""
    return await _flood(target, HALF_A_HELLO)


async def _flood(target: Target, said: bytes) -> Tally:
    places = [(at.hostname or "", at.port or 0) for at in map(urlsplit, (target.nats_url, target.api_url))]
    held = await asyncio.gather(*(_hold(host, port, said) for host, port in places for _ in range(CONNECTIONS)))
    return Tally(len(held), refused=sum(held))


async def _hold(host: str, port: int, said: bytes) -> bool:
    """Keep a connection for a while; whether the other side has ended it."""
    try:
        async with asyncio.timeout(HOLD_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(said)
                while await reader.read(4096):
                    pass
            finally:
                writer.close()
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


OutsideAttack = Callable[[httpx.AsyncClient, Target, random.Random], Awaitable[Tally]]
