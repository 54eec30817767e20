"""The keys that encrypt secrets at rest. They are in a file outside of the database."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_FILE: Final = "CES_SECRETS_KEY_FILE"
_KEY: Final = 32  # bytes
_NONCE: Final = 12
ID_LENGTH: Final = 8  # of a key, whose id stands before what it has sealed


class Unreadable(Exception):
    """What is in the database cannot be decrypted; the text says what would help."""


class SecretKeys:
    """The first key encrypts, any of them decrypts. What is sealed for one tenant and name is nothing for another."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = {_id_of(key): AESGCM(key) for key in keys}
        self._first = _id_of(keys[0])

    def seal(self, tenant: str, name: str, value: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return self._first + nonce + self._ciphers[self._first].encrypt(nonce, value, _place(tenant, name))

    def unseal(self, tenant: str, name: str, sealed: bytes) -> bytes:
        """Raises Unreadable."""
        cipher = self._ciphers.get(sealed[:ID_LENGTH])
        if cipher is None:
            raise Unreadable(f"secret {name} of tenant {tenant} was encrypted with a key that is not in {_FILE}")
        try:
            return cipher.decrypt(
                sealed[ID_LENGTH : ID_LENGTH + _NONCE], sealed[ID_LENGTH + _NONCE :], _place(tenant, name)
            )
        except (InvalidTag, ValueError) as error:
            raise Unreadable(f"secret {name} of tenant {tenant} is damaged: store it again") from error

    @property
    def former(self) -> list[bytes]:
        """How begins what another key than the first has sealed."""
        return [key for key in self._ciphers if key != self._first]


def parse_keys(text: str) -> SecretKeys:
    """A key on each line, 32 bytes in base64. Raises ValueError."""
    lines = text.split()
    keys = [_parsed(number, line) for number, line in enumerate(lines, start=1)]
    if not keys:
        raise ValueError("no key is in it")
    return SecretKeys(keys)


def _parsed(number: int, line: str) -> bytes:
    try:
        key = base64.b64decode(line, altchars=b"-_" if {"-", "_"} & set(line) else None, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"key {number} is not written in base64") from error
    if len(key) != _KEY:
        raise ValueError(
            f"key {number} has {len(key)} bytes and must have {_KEY}: openssl rand -base64 {_KEY} makes one"
        )
    return key


def _id_of(key: bytes) -> bytes:
    return sha256(b"ces secrets key" + key).digest()[:ID_LENGTH]


def _place(tenant: str, name: str) -> bytes:
    return f"{tenant}\0{name}".encode()
