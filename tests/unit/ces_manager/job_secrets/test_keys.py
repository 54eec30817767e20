"""Keys that encrypt secrets at rest: bound to their place, and exchanged for others."""

from __future__ import annotations

import base64

import pytest

from ces_common.natsauth.secret_files import new_key
from ces_manager.job_secrets.keys import Unreadable, parse_keys


def test_a_secret_is_for_its_tenant_and_name_alone() -> None:
    keys = parse_keys(new_key())
    sealed = keys.seal("red", "hub", b"marker")
    assert keys.unseal("red", "hub", sealed) == b"marker"
    assert b"marker" not in sealed
    assert keys.seal("red", "hub", b"marker") != sealed
    for tenant, name, data in (("blue", "hub", sealed), ("red", "bank", sealed), ("red", "hub", sealed[:-1])):
        with pytest.raises(Unreadable, match=f"secret {name} of tenant {tenant} is damaged: store it again"):
            keys.unseal(tenant, name, data)


def test_the_first_key_encrypts_and_each_of_them_decrypts() -> None:
    old, new = new_key(), new_key()
    sealed = parse_keys(old).seal("red", "hub", b"marker")
    both = parse_keys(new + old)
    assert both.unseal("red", "hub", sealed) == b"marker"
    assert both.former == [sealed[:8]]
    with pytest.raises(Unreadable, match="a key that is not in CES_SECRETS_KEY_FILE"):
        parse_keys(new).unseal("red", "hub", sealed)
    assert parse_keys(new).unseal("red", "hub", both.seal("red", "hub", b"marker")) == b"marker"


def test_keys_are_written_in_either_base64() -> None:
    raw = b"\xfb\xff" * 16
    for line in (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()):
        assert parse_keys(f"\n{line}\n").former == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n", "no key is in it"),
        (new_key() + "c2hvcnQ=", "key 2 has 5 bytes and must have 32: openssl rand -base64 32 makes one"),
        ("no base64 at all!", "key 1 is not written in base64"),
    ],
    ids=["none", "short", "no-base64"],
)
def test_what_is_no_key_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_keys(text)
