"""What is sealed to a user's key is for that user alone."""

from __future__ import annotations

import pytest

from ces_common.natsauth import new_user_key
from ces_common.natsauth.keys import BadKey
from ces_common.natsauth.sealed_messages import seal, unseal


def test_only_the_one_whom_it_is_for_can_read_it() -> None:
    one, other = new_user_key(), new_user_key()
    sealed = seal(one.public, b"marker")
    assert unseal(one.seed, sealed) == b"marker"
    assert b"marker" not in sealed
    assert seal(one.public, b"marker") != sealed, "nobody sees that it is the same again"
    for seed, data in ((other.seed, sealed), (one.seed, sealed[:-1] + bytes([sealed[-1] ^ 1])), (one.seed, b"short")):
        with pytest.raises(BadKey, match="sealed for another key, or is damaged"):
            unseal(seed, data)


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(BadKey):
        seal("UNKEY", b"x")
    with pytest.raises(BadKey, match="not a NATS seed"):
        unseal("SUNSEED", b"x" * 100)
