"""The programs of an owner, in a control group of its own: pieces of work of some milliseconds, the more of them the
more the owner needs its device at that time of its day. In the end it says as JSON when each was due and how long after
that it was done.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ces_common.cgroups import Group, hierarchies
from ces_experiments.malleable.tides.days import OwnerDay
from ces_sim.malleable.availability import DAY_S

PIECE_S = 0.004
"""CPU time of a piece."""
TRIES = 20
BLOCK = bytes(4096)
BEHIND_S = 1.0  # what is due for longer is not done any more: nobody would wait for it


@dataclass(frozen=True)
class Orders:
    """``group``: its control group; ``begins``: midnight, by the machine's steady clock; ``length_s``: of the day, by
    that clock; ``cores``: what it ever needs of them; ``rounds``: hashes that make a piece."""

    group: str
    day: dict[str, Any]
    begins: float
    length_s: float
    cores: float
    rounds: int


def main() -> None:
    orders = Orders(**json.loads(sys.argv[1]))
    Group(hierarchies(), orders.group).join()
    json.dump(list(worked(orders)), sys.stdout)


def worked(orders: Orders) -> Iterator[tuple[float, float]]:
    """Seconds since midnight, of the day, at which each piece was due, and the seconds of the clock that it took."""
    day = OwnerDay(**orders.day)
    due = orders.begins
    while (since := due - orders.begins) < orders.length_s:
        time.sleep(max(0.0, due - time.monotonic()))
        piece(orders.rounds)
        done, time_s = time.monotonic(), since / orders.length_s * DAY_S
        yield time_s, done - due
        due = max(due + PIECE_S / (orders.cores * day.load(time_s)), done - BEHIND_S)


def piece(rounds: int) -> None:
    """Hashes, because a loop of Python takes up to a sixth longer in one process than in another, and these 1 %."""
    for _ in range(rounds):
        hashlib.sha256(BLOCK).digest()


def rounds_of_piece() -> int:
    """How many this machine does in the time of a piece when nothing disturbs it: the most of some tries."""
    return max(_rounds_of_piece() for _ in range(TRIES))


def _rounds_of_piece() -> int:
    tried, before = 10_000, time.process_time()
    piece(tried)
    return round(tried * PIECE_S / (time.process_time() - before))


if __name__ == "__main__":
    main()
