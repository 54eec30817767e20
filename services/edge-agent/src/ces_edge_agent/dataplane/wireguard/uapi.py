"""How wireguard-go is asked and told: lines of text over a socket, the cross-platform interface of WireGuard."""

from __future__ import annotations

import os
import socket
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ces_edge_agent.dataplane.wireguard.config import Change, Endpoint, Peer, State
from ces_edge_agent.dataplane.wireguard.keys import public_of

SOCKETS: Final = Path("/var/run/wireguard")
ANSWER_S: Final = 2.0
LARGEST: Final = 1 << 24  # bytes of an answer: far more than all peers take


def path_of(device: str) -> Path:
    return SOCKETS / f"{device}.sock"


def read(device: str) -> State:
    """Raises OSError where nobody answers."""
    return parse_state(_ask(device, "get=1\n\n"))


def write(device: str, change: Change) -> None:
    """Raises OSError."""
    _ask(device, request_for(change))


def request_for(change: Change) -> str:
    return "".join(f"{name}={value}\n" for name, value in _settings(change)) + "\n"


def _settings(change: Change) -> Iterator[tuple[str, object]]:
    yield "set", 1
    if change.private is not None:
        yield "private_key", _hex(change.private)
    if change.port is not None:
        yield "listen_port", change.port
    for peer in change.peers:
        yield "public_key", _hex(peer.key)
        if peer.endpoint is not None:
            yield "endpoint", _endpoint(peer.endpoint)
        if peer.allowed is not None:
            yield "replace_allowed_ips", "true"
            for each in sorted(peer.allowed):
                yield "allowed_ip", each
    for key in change.removed:
        yield "public_key", _hex(key)
        yield "remove", "true"


def parse_state(text: str) -> State:
    """Raises ValueError."""
    public, port = "", 0
    peers: dict[str, Peer] = {}
    key = ""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "private_key":
            public = public_of(_base64(value)) if value.strip("0") else ""
        elif name == "listen_port":
            port = int(value)
        elif name == "public_key":
            key = _base64(value)
            peers[key] = Peer()
        elif name == "endpoint":
            peers[key] = replace(peers[key], endpoint=_parse_endpoint(value))
        elif name == "allowed_ip":
            peers[key] = replace(peers[key], allowed=peers[key].allowed | {value})
        elif name == "last_handshake_time_sec":
            peers[key] = replace(peers[key], shaken=peers[key].shaken + int(value))
        elif name == "last_handshake_time_nsec":
            peers[key] = replace(peers[key], shaken=peers[key].shaken + int(value) / 1e9)
    return State(public, port, peers)


def _ask(device: str, request: str) -> str:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ANSWER_S)
        asking.connect(str(path_of(device)))
        asking.sendall(request.encode())
        answer = b""
        while not answer.endswith(b"\n\n"):
            read = asking.recv(65536)
            if not read or len(answer) > LARGEST:
                raise ConnectionResetError("wireguard-go broke off")
            answer += read
    text = answer.decode()
    _, _, error = text.rpartition("errno=")
    if number := abs(int(error)):
        raise OSError(number, f"wireguard-go: {os.strerror(number)}")
    return text


def _hex(key: str) -> str:
    return b64decode(key).hex()


def _base64(key: str) -> str:
    return b64encode(bytes.fromhex(key)).decode()


def _endpoint(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _parse_endpoint(text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
