"""The WireGuard of a node, with a device that is only remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ces_common.messages.desired import DesiredNetwork, EncryptedTunnel, LinkDevice, VxlanTunnel
from ces_edge_agent.dataplane.wireguard import implementations
from ces_edge_agent.dataplane.wireguard.config import Change, Peer, State
from ces_edge_agent.dataplane.wireguard.keys import SETTLE_S, KeyFile, new_key, public_of
from ces_edge_agent.dataplane.wireguard.pace import BELIEVED_S, LOOK_S, ROTATION_LOOK_S
from ces_edge_agent.dataplane.wireguard.tunnels import Tunnels, TunnelSettings
from ces_edge_agent.ports import DataPlaneError

LIFE_S = 1000.0
NEIGHBOUR = public_of(new_key())


class Machine:
    """What stands in for it: a clock, a device, and whether the kernel has WireGuard."""

    def __init__(self) -> None:
        self.now, self.state, self.fault = 1_800_000_000.0, State(), ""

    def has_wireguard(self, namespace: Path) -> bool:
        if self.fault:
            raise DataPlaneError(self.fault)
        return True

    def write(self, kind: str, device: str, inside: Path, change: Change) -> None:
        peers = dict(self.state.peers) | {each.key: Peer(each.allowed or frozenset()) for each in change.peers}
        public = public_of(change.private) if change.private is not None else self.state.public
        self.state = State(public, change.port or self.state.port, peers)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(implementations, "kernel_has_it", machine.has_wireguard)
    monkeypatch.setattr(implementations, "read", lambda *_: machine.state)
    monkeypatch.setattr(implementations, "write", machine.write)
    monkeypatch.setattr("ces_edge_agent.dataplane.netlink.namespace.ensure", lambda name: Path(name))
    monkeypatch.setattr(Tunnels, "_furnish", lambda *_: None)
    return machine


def tunnels_of(machine: Machine, keys: Path) -> Tunnels:
    return Tunnels(TunnelSettings(keys, 51872, LIFE_S), Path("ces-wg"), Path("host"), lambda: machine.now)


def document(told: list[str], *keys: str) -> DesiredNetwork:
    """With one neighbour over an encrypted link."""
    link = LinkDevice(
        peer="n2", device="to-n2", kind="wireguard", bandwidth=1, best_effort=1, gateway="10.2.0.1",
        vxlan=VxlanTunnel(vni=1, remote="10.2.0.1"),
        wireguard=EncryptedTunnel(keys=list(keys), address="192.0.2.2", port=51872),
    )  # fmt: skip
    return DesiredNetwork(node="n1", generation=1, router="10.1.0.1", links=[link], link_keys=told)


def fail(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_keys_that_cannot_be_read_are_told_and_stop_nothing(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "link-keys.json"
    path.write_text("{")
    tunnels = tunnels_of(machine, path)
    tunnels.open(tmp_path)
    assert tunnels.told is None
    assert tunnels.apply(DesiredNetwork(node="n1", generation=1), {}) == {}
    (reason,) = tunnels.apply(document([], NEIGHBOUR), {}).values()
    assert "link-keys.json holds no keys: delete it" in reason
    with pytest.raises(DataPlaneError, match=r"link-keys.json holds no keys"):
        tunnels.rotate()
    path.unlink()
    tunnels.open(tmp_path)
    assert tunnels.told is not None
    assert tunnels.apply(document([], NEIGHBOUR), {}) == {}


def test_a_kernel_that_does_not_say_whether_it_has_wireguard_is_asked_again(machine: Machine, tmp_path: Path) -> None:
    machine.fault = "WireGuard: Cannot allocate memory"
    tunnels = tunnels_of(machine, tmp_path / "link-keys.json")
    tunnels.open(tmp_path)
    assert tunnels.told is None
    assert tunnels.apply(document([], NEIGHBOUR), {}) == {"n2": machine.fault}
    machine.fault = ""
    tunnels.open(tmp_path)
    assert tunnels.told is not None


def test_a_key_that_could_not_be_saved_is_neither_told_nor_used_until_it_is(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "link-keys.json"
    tunnels = tunnels_of(machine, path)
    tunnels.open(tmp_path)
    tunnels.rotate()
    (current,) = KeyFile(path).load(machine.now).public

    def look(told: list[str]) -> bool:
        tunnels.apply(document(told, NEIGHBOUR), {})
        over = tunnels.look()
        machine.now += SETTLE_S
        return over

    with monkeypatch.context() as full:
        full.setattr(KeyFile, "save", fail)
        for _ in range(3):
            assert not look([current])
            assert tunnels.told is not None
            assert tunnels.told.keys == [current]
    assert not look([current])
    assert tunnels.told.keys == KeyFile(path).load(machine.now).public
    _, following = tunnels.told.keys
    assert not look([current, following])
    assert machine.state.public == current
    assert look([current, following])
    assert machine.state.public == following

    with monkeypatch.context() as full:  # nobody was there before, so it is the current one now
        full.setattr(KeyFile, "save", fail)
        look([current, following])
        assert machine.state.public == following
        assert tunnels.told.keys == [current, following]
    look([current, following])
    assert tunnels.told.keys == KeyFile(path).load(machine.now).public == [following]


def test_a_neighbour_that_tells_two_keys_is_not_watched_closely_for_ever(machine: Machine, tmp_path: Path) -> None:
    tunnels = tunnels_of(machine, tmp_path / "link-keys.json")
    tunnels.open(tmp_path)
    assert tunnels.look_s is None
    tunnels.apply(document([], NEIGHBOUR), {})
    assert (tunnels.look_s, tunnels.going_over) == (LOOK_S, frozenset())
    tunnels.apply(document([], NEIGHBOUR, public_of(new_key())), {})
    assert (tunnels.look_s, tunnels.going_over) == (ROTATION_LOOK_S, {"n2"})
    machine.now += BELIEVED_S
    tunnels.apply(document([], NEIGHBOUR, public_of(new_key())), {})
    assert (tunnels.look_s, tunnels.going_over) == (LOOK_S, frozenset())
