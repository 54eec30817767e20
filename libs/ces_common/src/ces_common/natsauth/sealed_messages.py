"""Messages that only one user can read, whoever carries them: sealed to the key with which that user proves itself."""

from __future__ import annotations

import base64

import nkeys
from nacl.exceptions import CryptoError
from nacl.public import SealedBox
from nacl.signing import SigningKey, VerifyKey

from ces_common.natsauth.keys import BadKey, check_user_key


def seal(public: str, data: bytes) -> bytes:
    """``data`` for the user with this public key. Raises BadKey."""
    key = VerifyKey(base64.b32decode(check_user_key(public))[1:33])
    return bytes(SealedBox(key.to_curve25519_public_key()).encrypt(data))


def unseal(seed: str, sealed: bytes) -> bytes:
    """Raises BadKey for a text that is no seed, or where it was sealed for somebody else or is damaged."""
    try:
        _, raw = nkeys.decode_seed(seed.encode())
    except Exception as error:
        raise BadKey("not a NATS seed") from error
    try:
        return bytes(SealedBox(SigningKey(bytes(raw)).to_curve25519_private_key()).decrypt(sealed))
    except (CryptoError, ValueError) as error:
        raise BadKey("this was sealed for another key, or is damaged") from error
