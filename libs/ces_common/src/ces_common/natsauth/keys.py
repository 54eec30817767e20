"""NATS keys: ed25519 seeds and public keys in their text form."""

from __future__ import annotations

import base64
import binascii
import os
from enum import Enum

import nkeys
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey


class Kind(Enum):
    OPERATOR = nkeys.PREFIX_BYTE_OPERATOR
    ACCOUNT = nkeys.PREFIX_BYTE_ACCOUNT
    USER = nkeys.PREFIX_BYTE_USER


class BadKey(ValueError):
    """A text that is not the key it should be."""


def new_seed(kind: Kind) -> str:
    seed: bytes = nkeys.encode_seed(os.urandom(32), kind.value)
    return seed.decode()


def public_key(seed: str) -> str:
    """Raises BadKey."""
    public: bytes = _pair(seed).public_key
    return public.decode()


def sign(seed: str, data: bytes) -> bytes:
    """Raises BadKey."""
    signature: bytes = _pair(seed).sign(data)
    return signature


def is_signature(public: str, data: bytes, signature: bytes) -> bool:
    """Whether the user whose public key that is has signed the data. Raises BadKey."""
    raw = base64.b32decode(check_user_key(public))
    try:
        VerifyKey(raw[1:33]).verify(data, signature)
    except (BadSignatureError, ValueError):  # ValueError: not of a signature's length
        return False
    return True


def check_user_key(public: str) -> str:
    """``public`` if it is the public key of a user: what arrives from a node that wants to join. Raises BadKey."""
    try:
        raw = base64.b32decode(public)
    except (binascii.Error, ValueError) as error:
        raise BadKey("not a NATS public key") from error
    if len(raw) != 35 or raw[0] != Kind.USER.value:
        raise BadKey("not the public key of a NATS user")
    if nkeys.crc16(bytearray(raw[:-2])).to_bytes(2, "little") != raw[-2:]:
        raise BadKey("a damaged NATS public key: its checksum differs")
    return public


def _pair(seed: str) -> nkeys.KeyPair:
    try:
        return nkeys.from_seed(bytearray(seed.encode()))
    except Exception as error:
        raise BadKey("not a NATS seed") from error
