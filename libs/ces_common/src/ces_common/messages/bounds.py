"""Bounds of what others send: what the database, a double and a person can hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from ces_common.fields import NODE_NAME

MAX_ID = 128  # characters
MAX_REASON = 500
MAX_ITEMS = 4096  # of one kind on one node: far more than it has
MAX_ATTEMPTS = 65536  # jobs that depend on one node, also on its way: each has a flow number at most


def _cut(value: object) -> object:
    return value[:MAX_REASON] if isinstance(value, str) else value


Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""Bytes, rates, versions: what a signed 64-bit column holds."""
Small = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""What is counted one by one: a signed 32-bit column holds it."""
ExitCode = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Port = Annotated[int, Field(ge=0, le=65535)]
Number = Annotated[float, Field(ge=-1e24, le=1e24, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e24, allow_inf_nan=False)]
Id = Annotated[str, Field(max_length=MAX_ID)]
PublicKey = Annotated[str, Field(pattern=r"^U[A-Z2-7]{55}$")]
"""Of a NATS user."""
TunnelKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$")]
"""A public key of WireGuard's: 32 bytes in base64."""
Node = Annotated[str, Field(pattern=NODE_NAME)]
Remark = Annotated[str, BeforeValidator(_cut), Field(max_length=MAX_REASON)]
"""A reason in words. A longer one is cut: what it is about matters more."""
