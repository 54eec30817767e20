"""What goes over a connection: a request at a step of its way, with its bytes, or the word that a sender has ended."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

HEAD = struct.Struct("!BHQI")  # length of the name, position, number, bytes that follow the name
LARGEST = 2**30
END = 2**16 - 1
"""Position of the frame that says that a sender has ended: its name is that task's. No way is so long."""
_PIECE = 2**18
_NOTHING = bytes(_PIECE)


class Torn(ConnectionError):
    """The connection ended, or what came over it is no frame."""


@dataclass(frozen=True)
class Frame:
    """``name``: of the class of requests; ``position``: of the step that it arrives at; ``size``: bytes of the message,
    which are zeros."""

    name: str
    position: int
    number: int = 0
    size: int = 0


def send(connection: socket.socket, frame: Frame) -> None:
    """Raises OSError."""
    name, left = frame.name.encode(), frame.size
    connection.sendall(HEAD.pack(len(name), frame.position, frame.number, frame.size) + name)
    while left:
        connection.sendall(_NOTHING[:left])
        left -= min(left, _PIECE)


def receive(connection: socket.socket) -> Frame:
    """The next frame, once all of it has come. Raises Torn, OSError."""
    length, position, number, size = HEAD.unpack(_exactly(connection, HEAD.size))
    if size > LARGEST or not length:
        raise Torn(f"a message of {size} bytes for a name of {length} is none of ours")
    try:
        name = _exactly(connection, length).decode()
    except UnicodeDecodeError as error:
        raise Torn("a name that is no text") from error
    left, buffer = size, bytearray(min(size, _PIECE))
    while left:
        got = connection.recv_into(buffer, min(left, len(buffer)))
        if not got:
            raise Torn("the connection ended within a message")
        left -= got
    return Frame(name, position, number, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise Torn("the connection ended")
        parts += part
    return bytes(parts)
