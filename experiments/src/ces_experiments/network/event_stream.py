"""A worker that keeps one TCP connection full, or listens to one, and says how many bytes have arrived by when.

Standard library only. Argument: seconds to send. Times are CLOCK_BOOTTIME, which all processes of a machine share.
"""

import json
import os
import socket
import sys
import time

SAY_S = 0.02


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def send(until: float) -> None:
    peers = json.loads(os.environ["CES_PEERS"])
    peer = next(peer for peer in peers if peer["task"] != os.environ["CES_TASK"])
    while True:
        try:
            connection = socket.create_connection((peer["address"], peer["port"]), timeout=60)
            break
        except OSError:
            time.sleep(0.1)
    while now() < until:
        connection.sendall(bytes(16384))
    connection.close()


def listen() -> None:
    server = socket.create_server((os.environ["CES_ADDRESS"], int(os.environ["CES_PORT"])))
    connection, _ = server.accept()
    total, said = 0, 0.0
    while data := connection.recv(65536):
        total += len(data)
        if now() - said >= SAY_S:
            said = now()
            print(json.dumps({"t": said, "bytes": total}), flush=True)


if __name__ == "__main__":
    if any(flow["src"] == os.environ["CES_TASK"] for flow in json.loads(os.environ["CES_FLOWS"])):
        send(now() + float(sys.argv[1]))
    else:
        listen()
