"""What runs on the device, as root, sent there over ssh. It takes Python's standard library alone, down to Python 3.7,
so that even a device whose Python is too old can say so.

Its standard input: the number of bytes of a program, and the program, which ``device_program`` makes of these modules;
one line of JSON, the order; for an installation the files that the order lists, one behind the other; and last, once it
has asked for it, the join token. Its standard output: one JSON object a line, the last of them ``{"done": ...}``, or
``{"fault": NAME, "said": ..., "log": [...]}``.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import IO, Any

from ces_client.installation.on_device.facts import facts_of
from ces_client.installation.on_device.machine import LONGEST, Fault, Machine
from ces_client.installation.on_device.removal import remove
from ces_client.installation.on_device.setup import install


def serve(device: Machine, stream: IO[bytes], answers: IO[bytes]) -> int:
    """Obey the order that the stream begins with; returns the exit status."""

    def tell(document: dict[str, Any]) -> None:
        answers.write((json.dumps(document) + "\n").encode())
        answers.flush()

    try:
        order = json.loads(stream.readline().decode())
        if order["do"] == "facts":
            done = facts_of(device, order)
        elif order["do"] == "install":
            done = install(device, order, stream, tell)
        elif order["do"] == "log":
            done = {"log": device.log(order["since"])}
        else:
            done = remove(device, order, tell)
        tell({"done": done})
        return 0
    except Fault as fault:
        tell({"fault": fault.name, "said": fault.said[:LONGEST], "log": fault.log})
        return 1
    except BrokenPipeError:
        return 1
    except Exception as error:  # whoever looks on from afar sees nothing else
        tell({"fault": "device", "said": f"{type(error).__name__}: {error}"[:LONGEST], "log": []})
        return 1


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a lost connection ends the stream, which is met where it is read
    sys.exit(serve(Machine(), sys.stdin.buffer, sys.stdout.buffer))
