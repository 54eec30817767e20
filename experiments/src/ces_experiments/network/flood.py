"""``python -m ces_experiments.network.flood ADDRESS RATE``: UDP datagrams to an address at RATE bit/s of frames,
whatever becomes of them, until standard input ends.

A program of its own, since a sender that waits for other threads of its interpreter leaves gaps that look as if the
network had made them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ces_experiments.network.row import Worker
from ces_testbed.errors import TestbedError

FLOOD_PORT = 5303
UDP_SEGMENT = 103  # udp(7)
DATAGRAM = 1342  # fills a frame of an encrypted link, whose MTU is 1370
DATAGRAM_FRAME = DATAGRAM + 42
DATAGRAMS_AT_ONCE = 40
CATCH_UP_S = 0.1
READY = b"ready\n"
START_S, END_S = 30.0, 10.0


@contextmanager
def flood(src: Worker, dst: Worker, rate: int) -> Iterator[None]:
    """UDP datagrams from one worker to another at ``rate`` bit/s of frames. Raises TestbedError."""
    program = [sys.executable, "-m", "ces_experiments.network.flood", dst.address, str(rate)]
    command = [sys.executable, "-m", "ces_testbed.enter", src.namespace, *program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(START_S, process.kill)
        timer.start()
        ready = process.stdout.readline() == READY
        timer.cancel()
        if not ready:
            raise TestbedError(f"no flood from {src.address}: its words are above, or none came in {START_S:g} s")
        try:
            yield
            if process.poll() is not None:
                raise TestbedError(f"the flood from {src.address} ended before its time: its words are above")
        finally:
            process.stdin.close()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def send(address: str, rate: int) -> None:
    """Says when it has begun. Raises OSError where it cannot."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
    at_once = max(1, min(DATAGRAMS_AT_ONCE, round(rate * 0.01 / 8 / DATAGRAM_FRAME)))
    pause_s = at_once * DATAGRAM_FRAME * 8 / rate
    data = bytes(at_once * DATAGRAM)
    sender.sendto(data, (address, FLOOD_PORT))  # where that cannot be, nobody shall think there was a flood
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    due = time.monotonic() + pause_s
    while True:
        time.sleep(max(0.0, due - time.monotonic()))
        with suppress(OSError):
            sender.sendto(data, (address, FLOOD_PORT))
        due = max(due + pause_s, time.monotonic() - CATCH_UP_S)


def main() -> None:
    def last_words() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=last_words, daemon=True).start()
    send(sys.argv[1], int(sys.argv[2]))


if __name__ == "__main__":
    main()
