"""How messages between two regions are sealed: with the token that the pair shares, so that nobody on the way, the hub
included, can read them, change them, say them in another's name or as an answer to another question. Pure."""

from __future__ import annotations

import hashlib
import os

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
)
from nacl.exceptions import CryptoError

_NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
_STAMP = 8  # bytes: milliseconds since the epoch
FRESH_S = 60.0  # for which a message is good, either way: clocks of regions may differ by less


class BadSeal(ValueError):
    """A message that was not sealed by the one it says it is from, was changed, or is too old."""


def key_of(token: str) -> bytes:
    return hashlib.blake2b(token.encode(), digest_size=32, person=b"ces-regions").digest()


def seal(key: bytes, subject: str, data: bytes, now: float) -> bytes:
    """``subject``: under which it is sent; under no other can it be opened. ``now``: seconds since the epoch."""
    nonce = os.urandom(_NONCE)
    plain = round(now * 1000).to_bytes(_STAMP, "big") + data
    return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plain, subject.encode(), nonce, key)


def unseal(key: bytes, subject: str, sealed: bytes, now: float) -> bytes:
    """Raises BadSeal."""
    nonce, rest = sealed[:_NONCE], sealed[_NONCE:]
    try:
        plain = crypto_aead_xchacha20poly1305_ietf_decrypt(rest, subject.encode(), nonce, key)
    except (CryptoError, ValueError, TypeError) as error:
        raise BadSeal("not sealed with this pair's token") from error
    stamp = int.from_bytes(plain[:_STAMP], "big") / 1000
    if len(plain) < _STAMP or abs(now - stamp) > FRESH_S:
        raise BadSeal(f"sealed {now - stamp:.0f} s ago by this clock; the clocks of regions must agree")
    return plain[_STAMP:]
