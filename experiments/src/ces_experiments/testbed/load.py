"""Background work on a host: burns a share of a core, and sends on each of its task's flows what the flow reserves.

Standard library only. Arguments: seconds after which it ends, and the share of a core. A stream is like a camera's: it
sends at its rate and no faster, and what the network did not take in time is left out, not caught up with.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time

PAYLOAD = 0.95  # of a rate counted in Ethernet frames: what TCP leaves of it
TURN_S = 0.1
WAKE_BYTES = 16384
CONNECT_S = 30.0


def listen(address: str, port: int) -> None:
    """Take whatever comes, and forget it."""

    def discard(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, WAKE_BYTES)  # not for each packet
            while connection.recv(65536):
                pass

    server = socket.create_server((address, port))
    while True:
        connection, _ = server.accept()
        threading.Thread(target=discard, args=(connection,), daemon=True).start()


def stream(address: str, port: int, rate: int) -> None:
    """Send ``rate`` bit/s of frames for as long as the process lives."""
    data = bytes(round(rate * PAYLOAD / 8 * TURN_S))
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, port), CONNECT_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            due = time.monotonic()
            while True:
                connection.sendall(data)
                due = max(due + TURN_S, time.monotonic() - TURN_S)
                time.sleep(max(0.0, due - time.monotonic()))
        time.sleep(TURN_S)  # its peer is not there yet


def burn(until: float, share: float) -> None:
    while time.monotonic() < until:
        start = time.thread_time()
        while time.thread_time() - start < TURN_S * share:
            pass
        time.sleep(TURN_S)


def main() -> None:
    until = time.monotonic() + float(sys.argv[1])
    me = os.environ["CES_TASK"]
    peers = {peer["task"]: peer for peer in json.loads(os.environ["CES_PEERS"])}
    threads = [threading.Thread(target=listen, args=(peers[me]["address"], peers[me]["port"]), daemon=True)]
    for flow in json.loads(os.environ["CES_FLOWS"]):
        if flow["src"] == me:
            peer = peers[flow["dst"]]
            what = (peer["address"], peer["port"], flow["bandwidth"])
            threads.append(threading.Thread(target=stream, args=what, daemon=True))
    for thread in threads:
        thread.start()
    burn(until, float(sys.argv[2]))


if __name__ == "__main__":
    main()
