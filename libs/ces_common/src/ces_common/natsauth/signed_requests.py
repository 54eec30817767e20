"""Requests that a node signs with its key, beside the broker's challenges, which it signs with the same one."""

from __future__ import annotations

import base64
import binascii
from typing import Final, Literal

from ces_common.natsauth.keys import is_signature, sign

Purpose = Literal["join", "renew"]
SIGNATURE: Final = "Ces-Signature"  # the header
# A broker may choose what it has a client sign, but that is text: nothing in UTF-8 begins with this byte. So no broker
# can have a request signed, nor is one good for another purpose.
_MARK: Final = b"\xffces.v1."


def signature_of(seed: str, purpose: Purpose, body: bytes) -> str:
    """What to send in the header with this very body. Raises BadKey."""
    return base64.b64encode(sign(seed, _signed(purpose, body))).decode()


def is_signed(public: str, purpose: Purpose, body: bytes, signature: str) -> bool:
    """Whether the holder of ``public`` has signed that body for that purpose. Raises BadKey."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    return is_signature(public, _signed(purpose, body), raw)


def _signed(purpose: Purpose, body: bytes) -> bytes:
    return _MARK + purpose.encode() + b"\n" + body
