"""How a link's capacity is shared out between reservations and what must flow beside them.

HTB leaves do not obey their parent's sum, so what is promised to flows stops short of the capacity: the rest carries
the answers to reserved flows (TCP acknowledgements are about 2.2 % of a flow's frames at worst: one frame of 66 bytes
for two of 1514) and a bounded trickle for everything that reserved nothing.
"""

from __future__ import annotations

HEADROOM = 0.05  # share of a link that no plan may use
RETURN = 0.025  # a return class's rate, as a share of the flow that it answers
RETURN_FLOOR = 40_000  # bit/s; lets a handshake through beside a very slow flow
UNRESERVED = 0.02  # share of a link for all traffic without a reservation
UNRESERVED_FLOOR = 64_000  # bit/s


def reservable(capacity: int) -> int:
    """What plans may use of a capacity, in bit/s."""
    return int(capacity * (1 - HEADROOM))


def return_rate(bandwidth: int) -> int:
    """Rate of the class that carries the answers to a flow of this bandwidth, in bit/s."""
    return max(int(bandwidth * RETURN), RETURN_FLOOR)


def unreserved_rate(capacity: int) -> int:
    """Rate of the class that all other traffic on a link shares, in bit/s."""
    return max(int(capacity * UNRESERVED), UNRESERVED_FLOOR)
