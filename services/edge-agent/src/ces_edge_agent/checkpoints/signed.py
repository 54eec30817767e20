"""Requests for checkpoints, signed with the key that the asking node has joined with: where workers share their host's
address, an address proves nothing."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from ces_common.messages.desired import CheckpointReader
from ces_common.natsauth.keys import BadKey, is_signature, sign

NODE, SIGNATURE = "CES-Node", "CES-Signature"


def headers(seed: str, reader: str, server: str, job: str, digest: str) -> dict[str, str]:
    """The headers of a request. ``digest``: of the checkpoint; empty for the newest."""
    signature = sign(seed, _text(reader, server, job, digest))
    return {NODE: reader, SIGNATURE: base64.b64encode(signature).decode()}


def may_fetch(
    readers: Iterable[CheckpointReader], reader: str, signature: str, server: str, job: str, digest: str
) -> bool:
    """Whether one of the readers has signed this request."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    text = _text(reader, server, job, digest)
    known = (each for each in readers if each.owner == job and each.node == reader and (digest or each.newest))
    return any(_signed(each.key, text, raw) for each in known)


def _signed(key: str, text: bytes, signature: bytes) -> bool:
    try:
        return is_signature(key, text, signature)
    except BadKey:
        return False


def _text(*parts: str) -> bytes:
    return b"\0".join(part.encode() for part in ("ces-checkpoint", *parts))
