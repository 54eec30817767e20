"""What a WireGuard device is to be set to."""

from __future__ import annotations

from ces_common.messages.desired import EncryptedTunnel, LinkDevice, VxlanTunnel
from ces_edge_agent.dataplane.wireguard.config import (
    Change,
    Neighbour,
    Peer,
    PeerChange,
    State,
    change,
    neighbours_of,
    shaken,
)
from ces_edge_agent.dataplane.wireguard.keys import ALIVE_S, new_key, public_of

NOW = 1_800_000_000.0
OWN = new_key()
OLD, NEW, OTHER = (public_of(new_key()) for _ in range(3))
HERE = ("192.0.2.2", 51872)
N2 = Neighbour("n2", "10.2.0.1", (OLD,), HERE)
ADDRESS = frozenset(["10.2.0.1/32"])
RIGHT = State(public_of(OWN), 51872, {OLD: Peer(ADDRESS, HERE, NOW - 1)})


def link(peer: str, *keys: str) -> LinkDevice:
    wireguard = EncryptedTunnel(keys=list(keys), address=f"192.0.2.{peer[1:]}", port=51872)
    return LinkDevice(
        peer=peer, device=f"to-{peer}", kind="wireguard", bandwidth=1, best_effort=1, gateway=f"10.{peer[1:]}.0.1",
        vxlan=VxlanTunnel(vni=1, remote=f"10.{peer[1:]}.0.1"), wireguard=wireguard,
    )  # fmt: skip


def test_neighbours_are_those_over_encrypted_links() -> None:
    plain = link("n4").model_copy(update={"kind": "vxlan", "wireguard": None})
    assert neighbours_of([link("n2", OLD), plain]) == ([N2], {})


def test_no_link_is_encrypted_with_nobodys_key_or_anothers() -> None:
    found, faults = neighbours_of([link("n2", OLD), link("n3"), link("n5", NEW, OLD)])
    assert found == [N2]
    assert faults == {"n3": "n3 has told no key", "n5": "the key of n5 is another neighbour's too"}


def test_a_new_device_gets_everything() -> None:
    assert change(OWN, 51872, [N2], State(), NOW) == Change(OWN, 51872, [PeerChange(OLD, ADDRESS, HERE)], [])


def test_what_is_right_is_left_alone() -> None:
    assert not change(OWN, 51872, [N2], RIGHT, NOW)


def test_peers_that_are_no_neighbours_go() -> None:
    assert change(OWN, 51872, [], RIGHT, NOW) == Change(peers=[], removed=[OLD])


def test_of_two_keys_the_one_that_shook_hands_last_has_the_address() -> None:
    both = Neighbour("n2", "10.2.0.1", (OLD, NEW), HERE)
    told = change(OWN, 51872, [both], RIGHT, NOW)
    assert told.peers == [PeerChange(NEW, frozenset(), HERE)], "until it has shaken hands, the other keeps it"
    over = State(RIGHT.public, 51872, dict(RIGHT.peers) | {NEW: Peer(frozenset(), HERE, NOW)})
    assert change(OWN, 51872, [both], over, NOW).peers == [PeerChange(NEW, ADDRESS), PeerChange(OLD, frozenset())]
    assert shaken([both], over) == {"n2": NOW}


def test_a_neighbour_that_moved_is_followed_where_it_does_not_say_so_itself() -> None:
    moved = Neighbour("n2", "10.2.0.1", (OLD,), ("192.0.2.99", 51872))
    assert not change(OWN, 51872, [moved], RIGHT, NOW), "what it sends shows where it is"
    told = change(OWN, 51872, [moved], RIGHT, NOW + ALIVE_S)
    assert told.peers == [PeerChange(OLD, None, ("192.0.2.99", 51872))]
