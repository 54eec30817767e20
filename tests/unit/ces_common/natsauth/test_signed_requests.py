"""Requests that a node signs with the key by which brokers know it."""

from __future__ import annotations

import base64

import pytest

from ces_common.natsauth import is_signed, new_user_key, signature_of
from ces_common.natsauth.keys import BadKey, Kind, new_seed, public_key, sign

KEY = new_user_key()
BODY = b'{"name": "n1"}'


def test_a_signature_is_of_one_body_by_one_key_for_one_purpose() -> None:
    signature = signature_of(KEY.seed, "join", BODY)
    assert is_signed(KEY.public, "join", BODY, signature)
    assert not is_signed(KEY.public, "join", BODY + b" ", signature)
    assert not is_signed(KEY.public, "renew", BODY, signature)
    assert not is_signed(new_user_key().public, "join", BODY, signature)


@pytest.mark.parametrize("wrong", ["", "!", "AAAA", "é", base64.b64encode(b"x" * 64).decode()])
def test_what_is_no_signature_is_none(wrong: str) -> None:
    assert not is_signed(KEY.public, "join", BODY, wrong)


def test_the_key_must_be_a_users() -> None:
    for bad in ("nonsense", public_key(new_seed(Kind.ACCOUNT)), "U" + "A" * 55):
        with pytest.raises(BadKey):
            is_signed(bad, "join", BODY, signature_of(KEY.seed, "join", BODY))


def test_a_broker_that_chooses_what_is_signed_gets_no_request_signed() -> None:
    """The client signs the broker's challenge as it comes, which is text."""
    for challenge in ("ces.v1.join\n" + BODY.decode(), "\xffces.v1.join\n" + BODY.decode()):
        forged = base64.b64encode(sign(KEY.seed, challenge.encode())).decode()
        assert not is_signed(KEY.public, "join", BODY, forged)
