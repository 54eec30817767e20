"""A worker that floods: UDP datagrams to the next task of its job, as fast as its link carries. Argument: bit/s.

Without a flow nothing is reserved for it: it is whoever else uses the wires.
"""

from __future__ import annotations

import json
import os
import sys

from ces_experiments.network.flood import send


def main() -> None:
    peers = sorted(json.loads(os.environ["CES_PEERS"]), key=lambda peer: peer["rank"])
    rank = int(os.environ["RANK"])
    send(peers[(rank + 1) % len(peers)]["address"], int(sys.argv[1]))


if __name__ == "__main__":
    main()
