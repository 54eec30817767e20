"""How a link's capacity is shared out between reservations and what must flow beside them.

HTB leaves do not obey their parent's sum, so what is promised to flows stops short of the capacity: the rest carries
the answers to reserved flows (TCP acknowledgements are about 2.2 % of a flow's frames at worst: one frame of 66 bytes
for two of 1514) and a bounded trickle for everything that reserved nothing.

A medium carries whole packets. Those of a tunnel are 50 bytes longer than the frames inside, which is what flows are
promised: 3.4 % of a full one, and for the acknowledgements 4 % of a flow's frames instead of 2.2. Those of an encrypted
tunnel are 110 to 125 bytes longer: 8 % of a full one, and 7 % for the acknowledgements.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal

LinkKind = Literal["veth", "vxlan", "wireguard"]
"""``vxlan``: a tunnel in the clear; ``wireguard``: the same inside an encrypted one."""

HEADROOM = 0.05  # share of a link that no plan may use
TUNNELS_HEADROOM = 0.10  # the same of a medium that tunnels share
ENCRYPTED_HEADROOM = 0.17  # of one with encrypted tunnels: enough where packets have 1280 bytes
RETURN = 0.025  # a return class's rate, as a share of the flow that it answers
RETURN_BASE = 40_000  # bit/s on top of it, for handshakes and short messages: what a slow flow's share has no room for
BEST_EFFORT = 0.02  # share of a link for all traffic without a reservation
LEAST_RATE = 8_000  # bit/s; no class is made slower than this


_OF_MEDIUM: Final[dict[str, float]] = {
    "veth": HEADROOM,
    "vxlan": TUNNELS_HEADROOM,
    "wireguard": ENCRYPTED_HEADROOM,
}


def usable(configured: int, measured: int | None) -> int:
    """What a link carries in bit/s: the measured capacity where that is lower than the configured one."""
    return configured if measured is None else min(configured, measured)


def reservable(capacity: int) -> int:
    """What plans may use of a capacity, in bit/s."""
    return int(capacity * (1 - HEADROOM))


def reservable_of_medium(capacity: int, kinds: Collection[str]) -> int:
    """What plans may use of a medium in bit/s; ``kinds``: of the links that share it."""
    return int(capacity * (1 - max((_OF_MEDIUM[kind] for kind in kinds), default=HEADROOM)))


def return_rate(rate: int) -> int:
    """Rate of the class that carries the answers to a flow of this rate, in bit/s."""
    return int(rate * RETURN) + RETURN_BASE


def best_effort_rate(capacity: int) -> int:
    """Rate of the class that all other traffic on a link shares, in bit/s."""
    return max(int(capacity * BEST_EFFORT), LEAST_RATE)


def fitted(desired: Sequence[int], room: int) -> list[int]:
    """Rates no more than desired, together within ``room`` as far as the least rate of each allows: where they do not
    fit, all shrink alike."""
    total = sum(desired)
    if total <= max(room, 0):
        return list(desired)
    share = max(room, 0) / total
    return [max(int(rate * share), LEAST_RATE) for rate in desired]
