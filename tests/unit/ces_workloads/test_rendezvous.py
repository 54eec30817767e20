"""A stranger cannot hold a worker up while it waits for its neighbours."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from ces_workloads.rendezvous import read_line


def test_one_that_says_its_line_byte_by_byte_is_turned_away_in_time() -> None:
    here, there = socket.socketpair()
    given_up = Event()

    def dribble() -> int:
        said = 0
        with suppress(OSError):
            while said < 500 and not given_up.wait(0.01):
                said += there.send(b"x")
        return said

    with here, there, ThreadPoolExecutor(1) as threads:
        dribbling = threads.submit(dribble)
        try:
            with pytest.raises(TimeoutError):
                read_line(here, 0.2)
        finally:
            given_up.set()
            there.shutdown(socket.SHUT_WR)
        assert 0 < dribbling.result(timeout=10) < 500
