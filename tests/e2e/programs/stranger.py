"""A worker that tries to reach addresses that are none of its business. Standard library only, one file (see
recorded.py). Arguments: ``address:port`` of each target. Prints how each try ended, as JSON lines."""

import json
import os
import socket
import sys


def outcome(address: str, port: int) -> str:
    try:
        with socket.create_connection((address, port), timeout=2):
            return "connected"
    except OSError as error:
        return type(error).__name__ if error.errno is None else os.strerror(error.errno)


own = socket.create_server((os.environ["CES_ADDRESS"], int(os.environ["CES_PORT"])))
print(json.dumps({"target": "itself", "tcp": outcome(*own.getsockname())}), flush=True)
for target in sys.argv[1:]:
    host, _, number = target.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        for _ in range(20):
            try:
                datagrams.sendto(b"stranger", (host, int(number)))
            except OSError:
                break
    print(json.dumps({"target": target, "tcp": outcome(host, int(number))}), flush=True)
