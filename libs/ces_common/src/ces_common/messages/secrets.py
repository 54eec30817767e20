"""Secrets of tenants: how they are stored over the API, and how a node gets those of a task that it is to start."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from ces_common.fields import Document
from ces_common.messages.base import Message
from ces_common.messages.bounds import Id, Small

MAX_VALUE: Final = 64 * 1024  # bytes of one secret
GONE: Final = "gone"
"""Code of the refusal of secrets of which one is stored no more, so that waiting for it makes no sense."""
STARTED: Final = "started"
"""Code of the refusal of secrets of a worker that runs already, as its own agent has said."""


def _decoded(value: object) -> bytes:
    """What is wrong is said without the value."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text: the secret in base64")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("must be the secret in base64") from error


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


Base64 = Annotated[
    bytes,
    BeforeValidator(_decoded),
    PlainSerializer(_encoded),
    WithJsonSchema({"type": "string", "contentEncoding": "base64"}),
]


def _bounded(value: bytes) -> bytes:
    if not 0 < len(value) <= MAX_VALUE:
        raise ValueError(f"must have 1 to {MAX_VALUE} bytes, has {len(value)}")
    return value


class SecretValue(Document):
    """``PUT /v1/secrets/NAME``. ``value``: any bytes, in base64."""

    model_config = ConfigDict(hide_input_in_errors=True)

    value: Annotated[Base64, AfterValidator(_bounded), Field(repr=False)]


class SecretView(Message):
    """A secret without its value, which nobody is told again."""

    name: str
    tenant: str
    updated_at: datetime
    updated_by: str


class SecretChanged(Message):
    """A secret was stored, also in place of another of its name, or removed."""

    tenant: str
    name: str


class SecretsQuery(Message):
    """A node asks for the secrets of a task that it is to start. The answer is ``TaskSecrets``, sealed to the node's
    own key."""

    allocation: Id
    incarnation: Small


class TaskSecrets(Message):
    """``files``: name -> content."""

    model_config = ConfigDict(hide_input_in_errors=True)

    files: Annotated[dict[str, Base64], Field(repr=False)]
