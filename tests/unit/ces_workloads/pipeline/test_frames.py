"""Frames come out as they went in, and what is none is refused."""

from __future__ import annotations

import socket
import threading

import pytest

from ces_workloads.pipeline.frames import END, HEAD, LARGEST, Frame, Torn, receive, send


@pytest.mark.parametrize(
    "frame", [Frame("loop", 1, 7), Frame("loop", 2, 2**63, 700_000), Frame("client-0", END), Frame("ü" * 31, 3, 1, 1)]
)
def test_a_frame_arrives_whole(frame: Frame) -> None:
    one, other = socket.socketpair()
    with one, other:
        sender = threading.Thread(target=lambda: [send(one, each) for each in (frame, Frame("next", 1))])
        sender.start()
        assert receive(other) == frame
        assert receive(other) == Frame("next", 1)
        sender.join()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        HEAD.pack(4, 1, 1, 10) + b"loop" + b"\0" * 9,
        HEAD.pack(4, 1, 1, LARGEST + 1) + b"loop",
        HEAD.pack(0, 1, 1, 0),
        HEAD.pack(2, 1, 1, 0) + b"\xff\xff",
    ],
)
def test_what_is_no_frame_is_torn(raw: bytes) -> None:
    one, other = socket.socketpair()
    with other:
        with one:
            one.sendall(raw)
        with pytest.raises(Torn):
            receive(other)
