"""Joining a cluster: the node makes a key that never leaves it, and shows a one-time token. The token says who may be
believed: by the authority that it names all is checked from then on."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import structlog

from ces_common.hosts import is_loopback
from ces_common.messages.cards import MAX_CARDS, NUMBERED, Card
from ces_common.messages.membership import JoinAnswer, JoinRequest
from ces_common.natsauth import SIGNATURE, UserKey, credentials_file, new_user_key, read_credentials, signature_of
from ces_common.natsauth.credentials import Credentials
from ces_common.natsauth.keys import public_key
from ces_common.service import BadSetup
from ces_common.tls.pins import Untrusted, authority_at, fingerprint_of, secret_of, trusting
from ces_edge_agent.files import write_atomically
from ces_edge_agent.settings import AgentSettings

log = structlog.get_logger()
RETRY_S = 2.0


class JoinRefused(BadSetup):
    """The manager does not admit this node; the text says why and what to do."""


class Membership:
    """The result of joining, on disk: the credentials file and the URLs of the NATS servers."""

    def __init__(self, folder: Path) -> None:
        self.credentials = folder / "nats.creds"
        self._servers = folder / "servers.json"
        self._authority = folder / "authority.pem"

    def exists(self) -> bool:
        return self.credentials.exists() and self._servers.exists()

    def urls(self) -> list[str]:
        return [str(url) for url in json.loads(self._servers.read_text())]

    def held(self) -> Credentials:
        """Raises OSError, ValueError."""
        return read_credentials(self.credentials)

    @property
    def authority(self) -> Path | None:
        """The certificate of the authority that the token has named; None where it named none."""
        return self._authority if self._authority.exists() else None

    def trust(self, authority: str | None) -> None:
        """Believe what this authority certifies (PEM). Raises OSError."""
        if authority is not None:
            write_atomically(self._authority, authority)
        elif self._authority.exists():
            self._authority.unlink()

    def save(self, credentials: Credentials, urls: list[str]) -> None:
        write_atomically(self._servers, json.dumps(urls))
        self.renew(credentials)

    def renew(self, credentials: Credentials) -> None:
        """Raises OSError."""
        write_atomically(self.credentials, credentials_file(credentials.jwt, credentials.seed))


def _own_key(path: Path) -> UserKey:
    """The node's key, made at the first try to join and kept, so that another try does not need a second token."""
    if path.exists():
        seed = path.read_text().strip()
        return UserKey(seed=seed, public=public_key(seed))
    key = new_user_key()
    write_atomically(path, key.seed)
    return key


def _token(settings: AgentSettings) -> str:
    """Raises JoinRefused."""
    if settings.join_token:
        return settings.join_token
    if settings.join_token_file is None:
        raise JoinRefused(
            "this node has joined no cluster yet: write a token from 'ces node token' to the file CES_JOIN_TOKEN_FILE"
        )
    try:
        return settings.join_token_file.read_text().strip()
    except OSError as error:
        raise JoinRefused(f"CES_JOIN_TOKEN_FILE: {settings.join_token_file}: {error.strerror}") from error


def _forget_token(settings: AgentSettings) -> None:
    """Delete the token's file. Not before the answer is on disk: until then, the same token admits this key again."""
    if settings.join_token_file is not None:
        try:
            settings.join_token_file.unlink(missing_ok=True)
        except OSError as error:
            log.warning(
                "the join token is no longer needed: delete it", file=str(settings.join_token_file), error=str(error)
            )


async def ensure_joined(settings: AgentSettings, cards: Sequence[Card] = ()) -> Membership:
    """Join the cluster unless the node is a member; waits until the manager answers. The token is needed once: its file
    is deleted then. ``cards``: those that the node offers. Raises JoinRefused."""
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    membership = Membership(settings.state_dir)
    if not membership.exists():
        await _join(settings, membership, cards)
    else:
        if settings.join_token:
            log.warning("CES_JOIN_TOKEN is no longer needed: remove it from this agent's settings")
        for url in membership.urls():
            if not is_encrypted(url):  # joined by an agent of before, or with CES_INSECURE
                log.warning("in the clear: anybody on the way to NATS can give this node orders", url=url)
    _forget_token(settings)
    return membership


def is_encrypted(url: str) -> bool:
    """Whether what is said there is encrypted, or stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme in ("https", "tls") or is_loopback(parts.hostname or "")


def _check_encrypted(settings: AgentSettings, url: str) -> None:
    """Raises JoinRefused."""
    if not is_encrypted(url) and not settings.insecure:
        encrypted = "https" if url.startswith("http") else "tls"
        raise JoinRefused(
            f"{url} is in the clear, where anybody on the way can give this node orders: use {encrypted}://, or set "
            "CES_INSECURE=true inside a VPN"
        )


def manager_trust(settings: AgentSettings, membership: Membership) -> ssl.SSLContext:
    """What the manager is checked by: ``CES_CA``, the authority that the token has named, or those that the machine
    trusts. Raises JoinRefused."""
    file = settings.ca or membership.authority
    try:
        return trusting(file.read_text() if file is not None else None)
    except (OSError, ValueError) as error:
        raise JoinRefused(f"{file} cannot be used as an authority's certificate: {error}") from error


async def _find_authority(settings: AgentSettings, membership: Membership, token: str) -> None:
    """Have what the token names ready, before anything is said to whoever answers. Raises JoinRefused."""
    wanted = fingerprint_of(token)
    if settings.ca is not None or wanted is None:
        membership.trust(None)
        return
    if urlsplit(settings.manager_url).scheme != "https":
        raise JoinRefused(
            f"the token is of a cluster that speaks TLS: CES_MANAGER_URL ({settings.manager_url}) must be https://"
        )
    while True:
        try:
            membership.trust(await asyncio.to_thread(authority_at, settings.manager_url, wanted))
            return
        except Untrusted as error:
            raise JoinRefused(str(error)) from error
        except (OSError, ValueError) as error:
            log.info("waiting for the manager", url=settings.manager_url, error=str(error))
            await asyncio.sleep(RETRY_S)


def named_cards(cards: Sequence[Card]) -> list[Card]:
    """Those of which more is known than a number: a manager gives the others the same numbers, and one of before, which
    admits no node that names cards, just counts them."""
    return [card for card in cards if not (NUMBERED.fullmatch(card.id) and card == Card(id=card.id))][:MAX_CARDS]


async def _join(settings: AgentSettings, membership: Membership, cards: Sequence[Card]) -> None:
    token = _token(settings)
    _check_encrypted(settings, settings.manager_url)
    await _find_authority(settings, membership, token)
    key = _own_key(settings.state_dir / "user.nk")
    named = named_cards(cards)
    request = JoinRequest(
        token=secret_of(token),
        name=settings.node,
        public_key=key.public,
        cpu=settings.node_cpu,
        memory=settings.node_memory,
        gpu=len(cards),
        cards=named,
        arch=settings.node_arch,
        labels=settings.node_labels,
        runtime=settings.runtime,
        network=settings.network,
        host_address=settings.host_address,
        profile=settings.profile,
    )
    # A manager of before takes no field that it does not know.
    unsaid = {name for name in ("cards", "profile") if not getattr(request, name)}
    body = request.model_dump_json(exclude=unsaid).encode()
    headers = {"Content-Type": "application/json", SIGNATURE: signature_of(key.seed, "join", body)}
    checked = manager_trust(settings, membership)
    async with httpx.AsyncClient(base_url=settings.manager_url, timeout=10, verify=checked) as client:
        while True:
            try:
                answer = await client.post("/v1/nodes/join", content=body, headers=headers)
            except httpx.TransportError as error:
                log.info("waiting for the manager", url=settings.manager_url, error=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            if answer.status_code == 429 or answer.status_code >= 500:
                log.info("the manager cannot take the node yet", status=answer.status_code)
                await asyncio.sleep(RETRY_S)
                continue
            if answer.is_error:
                raise JoinRefused(f"the manager refused this node: {answer.text}")
            joined = JoinAnswer.model_validate_json(answer.content)
            for url in joined.nats_urls:
                _check_encrypted(settings, url)
            membership.save(Credentials(joined.jwt, key.seed), joined.nats_urls)
            log.info("joined", node=joined.node, subnet=joined.subnet)
            return
