"""``python -m ces_scheduler.adjustment_process``: a question of :mod:`ces_scheduler.running_job` comes as JSON on
standard input, and its answer goes to standard output. A process of its own, so that decisions never wait for it."""

from __future__ import annotations

import json
import sys

from ces_scheduler.side_limits import confine

CPU_S, MEMORY = 25, 2**31
"""The kernel ends it beyond these: seconds of CPU, and bytes of addresses."""


def main() -> None:
    confine(CPU_S, MEMORY)

    from ces_scheduler.adjustment_decision import decided

    sys.stdout.buffer.write(decided(json.load(sys.stdin.buffer)).encode())


if __name__ == "__main__":
    main()
