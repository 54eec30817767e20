"""What the REST API takes and answers where nodes come and go."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from ces_common.fields import ARCH, MAX_LABELS, Document, NodeName
from ces_common.messages.base import Message
from ces_common.messages.bounds import Id, PublicKey
from ces_common.messages.cards import Card, Cards
from ces_common.messages.profiles import NodeProfile
from ces_common.quantities import LARGEST
from ces_common.runtime import RuntimeKind

LOGIN_NAME = r"^[a-z_][a-z0-9_.-]{0,31}$"
FINGERPRINT = r"^SHA256:[A-Za-z0-9+/]{43}$"
MOST_HOST_KEYS = 4
LoginName = Annotated[str, Field(pattern=LOGIN_NAME)]
HostKeys = Annotated[list[Annotated[str, Field(pattern=FINGERPRINT)]], Field(min_length=1, max_length=MOST_HOST_KEYS)]
"""Fingerprints of a device's ssh host keys, as ``ssh-keygen -l`` shows them."""


class ApplicantRequest(Document):
    """``POST /v1/applicants``, which nobody has to prove anything for: a device asks to be made a node. ``user`` and
    ``port``: how an operator's ssh may come to it."""

    name: NodeName
    host_keys: HostKeys
    user: LoginName = "root"
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    arch: Annotated[str, Field(pattern=ARCH)] | None = None


class Applicant(Message):
    """A device that has applied. ``address``: from which it did; all else is what it claims, and nothing of that is
    believed."""

    name: NodeName
    state: Literal["applied"] = "applied"
    address: Annotated[str, Field(max_length=64)]
    user: LoginName
    port: Annotated[int, Field(ge=1, le=65535)]
    arch: Annotated[str, Field(pattern=ARCH)] | None = None
    host_keys: HostKeys
    applied_at: datetime
    ends_at: datetime


class RefusedApplicants(Message):
    """``addresses``: from which devices had applied under this name."""

    name: str
    addresses: list[str]


class JoinToken(Message):
    """A one-time token with which one node may join; ``token`` is shown once and never again."""

    token: str
    node: str | None = None
    expires_at: datetime


class JoinTokenRequest(Document):
    """``node``: only that node may use it; any when left out."""

    node: NodeName | None = None
    ttl_s: Annotated[int, Field(ge=10, le=7 * 86400)] = 3600


class JoinRequest(Document):
    """``POST /v1/nodes/join`` (authorised by the token, signed with the node's key): what a node has, and its public
    NATS user key (nkey U...). ``cards``: its GPUs, as far as they are known one by one, of ``gpu`` in all.
    ``profile``: None where nothing of it was said."""

    token: Id
    name: NodeName
    public_key: PublicKey
    cpu: Annotated[int, Field(ge=0, le=LARGEST)]  # millicores
    memory: Annotated[int, Field(ge=0, le=LARGEST)]  # bytes
    gpu: Annotated[int, Field(ge=0, le=1024)] = 0
    cards: Cards = []
    arch: Annotated[str, Field(max_length=32)] = ""
    labels: Annotated[dict[Id, Id], Field(max_length=MAX_LABELS)] = {}
    runtime: RuntimeKind = RuntimeKind.PROCESS
    network: Literal["tc", "none"] = "none"
    host_address: Annotated[str, Field(max_length=64)] = "127.0.0.1"
    profile: NodeProfile | None = None

    @field_validator("cards")
    @classmethod
    def _cards_once(cls, value: list[Card], info: ValidationInfo) -> list[Card]:
        ids = [card.id for card in value]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"card {twice[0]} is named twice")
        if len(value) > info.data.get("gpu", 0):
            raise ValueError(f"names {len(value)} cards, and gpu says {info.data.get('gpu', 0)}: make them one number")
        return value


class JoinAnswer(Message):
    """The node's NATS credential (a JWT for its own key) and where the servers are."""

    node: str
    jwt: str
    nats_urls: list[str]
    subnet: str


class RenewRequest(Document):
    """``POST /v1/nodes/renew`` (signed with the node's key): for a member whose credential has ended."""

    name: NodeName
    public_key: PublicKey


class ForgottenNode(Message):
    """The outcome of forgetting a node. ``jobs``: ids of the jobs that lost something. ``credential``: ``revoked``,
    NATS refuses it; ``pending``, NATS could not be told yet and will be; ``kept``, the manager cannot revoke it for
    want of a key.
    """

    node: str
    jobs: list[str] = []
    credential: Literal["revoked", "pending", "kept"]
