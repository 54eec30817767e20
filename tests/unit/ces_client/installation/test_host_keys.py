"""Fingerprints of host keys."""

from __future__ import annotations

import pytest
from fake_device import FINGERPRINT, KEY

from ces_client.errors import BadInput
from ces_client.installation.host_keys import read_fingerprint, read_keys


def test_a_file_of_known_hosts():
    (key,) = read_keys(f"# a comment\n\n@revoked * ssh-rsa AAAA\nshort line\n{KEY}\nh ssh-rsa not*base64\n")
    assert (key.kind, key.fingerprint, key.line) == ("ssh-ed25519", FINGERPRINT, KEY)


def test_fingerprints_as_people_copy_them():
    assert read_fingerprint(f" {FINGERPRINT}=\n") == FINGERPRINT
    assert read_fingerprint(FINGERPRINT.replace("SHA256", "sha256")) == FINGERPRINT


@pytest.mark.parametrize("text", ["", "SHA256:", "MD5:aa:bb", FINGERPRINT[:-4], FINGERPRINT + "AAAA", "SHA256:ä"])
def test_what_is_none_is_refused(text):
    with pytest.raises(BadInput, match="no fingerprint"):
        read_fingerprint(text)
