"""The text by which wireguard-go is asked and told."""

from __future__ import annotations

from base64 import b64encode

import pytest

from ces_edge_agent.dataplane.wireguard.config import Change, Peer, PeerChange, State
from ces_edge_agent.dataplane.wireguard.keys import public_of
from ces_edge_agent.dataplane.wireguard.uapi import parse_state, request_for

PRIVATE = b64encode(bytes.fromhex("11" * 32)).decode()
ONE, OTHER = (b64encode(bytes.fromhex(byte * 32)).decode() for byte in ("22", "33"))


def test_a_change_as_it_is_told() -> None:
    change = Change(
        PRIVATE,
        51872,
        [
            PeerChange(ONE, frozenset(["10.2.0.1/32"]), ("192.0.2.2", 51872)),
            PeerChange(OTHER, None, ("2001:db8::1", 1)),
        ],
        [OTHER],
    )
    assert request_for(change) == (
        f"set=1\nprivate_key={'11' * 32}\nlisten_port=51872\n"
        f"public_key={'22' * 32}\nendpoint=192.0.2.2:51872\nreplace_allowed_ips=true\nallowed_ip=10.2.0.1/32\n"
        f"public_key={'33' * 32}\nendpoint=[2001:db8::1]:1\n"
        f"public_key={'33' * 32}\nremove=true\n\n"
    )


def test_a_state_as_it_is_read() -> None:
    text = (
        f"private_key={'11' * 32}\nlisten_port=51872\nfwmark=3\n"
        f"public_key={'22' * 32}\npreshared_key={'00' * 32}\nprotocol_version=1\nendpoint=192.0.2.2:5\n"
        "last_handshake_time_sec=1800000000\nlast_handshake_time_nsec=500000000\ntx_bytes=1\nrx_bytes=2\n"
        "persistent_keepalive_interval=0\nallowed_ip=10.2.0.1/32\nallowed_ip=10.3.0.1/32\n"
        f"public_key={'33' * 32}\nendpoint=[2001:db8::1]:7\nlast_handshake_time_sec=0\nlast_handshake_time_nsec=0\n"
        "errno=0\n\n"
    )
    assert parse_state(text) == State(
        public_of(PRIVATE),
        51872,
        {
            ONE: Peer(frozenset(["10.2.0.1/32", "10.3.0.1/32"]), ("192.0.2.2", 5), 1_800_000_000.5),
            OTHER: Peer(frozenset(), ("2001:db8::1", 7), 0.0),
        },
    )


@pytest.mark.parametrize("text", ["errno=0\n\n", f"private_key={'00' * 32}\nerrno=0\n\n"])
def test_a_device_without_a_key(text: str) -> None:
    assert parse_state(text) == State()
