"""The two implementations of WireGuard: in the kernel, or wireguard-go, a program. Blocking.

Either way the device comes to lie in a namespace of its own, and its encrypted packets travel in the host's. Neither
ends with the agent.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from base64 import b64decode
from dataclasses import replace
from errno import EADDRINUSE, EOPNOTSUPP
from pathlib import Path
from typing import Any, Final, Literal

from pyroute2 import IPRoute, WireGuard
from pyroute2.netlink.exceptions import NetlinkError

from ces_edge_agent.dataplane.netlink.namespace import in_namespace, netlink
from ces_edge_agent.dataplane.netlink.steps import opened
from ces_edge_agent.dataplane.wireguard import uapi
from ces_edge_agent.dataplane.wireguard.config import Change, Peer, PeerChange, State
from ces_edge_agent.dataplane.wireguard.keys import public_of
from ces_edge_agent.ports import DataPlaneError

Kind = Literal["kernel", "wireguard-go"]
PROGRAM: Final = "wireguard-go"
TRIAL: Final = "ces-wg-trial"  # name of a device
TUN: Final = Path("/dev/net/tun")
START_S: Final = 10.0
NONE: Final = f"this machine has no WireGuard: neither the kernel's module nor {PROGRAM}"


def can_run_program() -> bool:
    return shutil.which(PROGRAM) is not None and os.access(TUN, os.R_OK | os.W_OK)


def kernel_has_it(namespace: Path) -> bool:
    """Found by making a device in this namespace, which goes at once. Raises DataPlaneError."""
    with netlink(namespace) as inside:
        try:
            delete(inside, TRIAL)  # an agent that was killed half-way left it
            inside.link("add", ifname=TRIAL, kind="wireguard")
            delete(inside, TRIAL)
        except NetlinkError as error:
            if error.code == EOPNOTSUPP:
                return False
            raise DataPlaneError(f"WireGuard: {os.strerror(error.code)}") from error
    return True


def delete(inside: IPRoute, device: str) -> None:
    """Nothing where it is not there. Raises NetlinkError."""
    for index in inside.link_lookup(ifname=device):
        inside.link("del", index=index)


def create(kind: Kind, device: str, underlay: Path, inside: Path, port: int) -> None:
    """Make the device, down and without keys. Raises DataPlaneError, NetlinkError, OSError."""
    if kind == "kernel":
        with netlink(underlay) as outer, opened(inside) as target:
            outer.link("add", ifname=device, kind="wireguard", net_ns_fd=target)
        return
    in_namespace(underlay, lambda: _check_free(port))  # the program itself would only write it to its log
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    try:
        in_namespace(
            underlay,
            lambda: subprocess.run(
                [PROGRAM, device], env=environment, capture_output=True, text=True, timeout=START_S, check=True
            ),
        )
    except subprocess.CalledProcessError as error:
        raise DataPlaneError(f"{PROGRAM} does not start: {error.stderr.strip() or error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise DataPlaneError(f"{PROGRAM} does not start within {START_S:g} s") from error
    uapi.read(device)  # once it answers, it has opened the device, which it would not find elsewhere
    with netlink(underlay) as outer, opened(inside) as target:
        outer.link("set", index=outer.link_lookup(ifname=device)[0], net_ns_fd=target)


def read(kind: Kind, device: str, inside: Path) -> State:
    """Raises OSError, NetlinkError where the device or its program is gone."""
    return uapi.read(device) if kind == "wireguard-go" else in_namespace(inside, lambda: _kernel_state(device))


def write(kind: Kind, device: str, inside: Path, change: Change) -> None:
    """Raises OSError, NetlinkError."""
    if kind == "wireguard-go":
        uapi.write(device, change)
    else:
        in_namespace(inside, lambda: _set_kernel(device, change))


def _check_free(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind(("", port))
        except OSError as error:
            if error.errno == EADDRINUSE:
                raise DataPlaneError(f"another program has UDP port {port}: CES_WIREGUARD_PORT names one") from error
            raise


def _kernel_state(device: str) -> State:
    with WireGuard() as wireguard:
        messages = list(wireguard.info(device))
    state = State()
    peers: dict[str, Peer] = {}
    for message in messages:  # what one does not hold, the next goes on with
        if (private := message.get_attr("WGDEVICE_A_PRIVATE_KEY")) is not None and b64decode(private).strip(b"\0"):
            state = replace(state, public=public_of(_text(private)))
        state = replace(state, port=message.get_attr("WGDEVICE_A_LISTEN_PORT") or state.port)
        for each in message.get_attr("WGDEVICE_A_PEERS") or []:
            key = _text(each.get_attr("WGPEER_A_PUBLIC_KEY"))
            before = peers.get(key, Peer())
            allowed = {str(ip["addr"]) for ip in each.get_attr("WGPEER_A_ALLOWEDIPS") or []}
            endpoint, at = each.get_attr("WGPEER_A_ENDPOINT"), each.get_attr("WGPEER_A_LAST_HANDSHAKE_TIME")
            peers[key] = Peer(
                before.allowed | allowed,
                (endpoint["addr"], endpoint["port"]) if endpoint else before.endpoint,
                at["tv_sec"] + at["tv_nsec"] / 1e9 if at else before.shaken,
            )
    return replace(state, peers=peers)


def _set_kernel(device: str, change: Change) -> None:
    with WireGuard() as wireguard:
        if change.private is not None or change.port is not None:
            wireguard.set(device, private_key=change.private, listen_port=change.port)
        for peer in change.peers:
            wireguard.set(device, peer=_kernel_peer(peer))
        for key in change.removed:
            wireguard.set(device, peer={"public_key": key, "remove": True})


def _kernel_peer(peer: PeerChange) -> dict[str, Any]:
    fields: dict[str, Any] = {"public_key": peer.key}
    if peer.endpoint is not None:
        fields["endpoint_addr"], fields["endpoint_port"] = peer.endpoint
    if peer.allowed is not None:
        fields |= {"replace_allowed_ips": True, "allowed_ips": sorted(peer.allowed)}
    return fields


def _text(key: bytes | str) -> str:
    return key.decode() if isinstance(key, bytes) else key
