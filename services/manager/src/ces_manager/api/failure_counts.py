"""What was tried from each address: how often it failed, and how much of it is under way. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_network
from typing import Final

FAILURES_PER_S, BURST = 1.0, 50  # of one address
MOST_ADDRESSES: Final = 10_000


class FailureCounts:
    """Failures by address: ``per_s`` in the long run, ``burst`` at once. No more attempts may be under way than may
    fail at once, since each may fail yet."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._gap_s, self._ahead_s, self._burst = 1 / per_s, burst / per_s, burst
        self._under_way: Counter[str] = Counter()
        self._due: dict[str, float] = {}  # address -> when all its failures would have happened evenly

    def wait_s(self, address: str, now: float) -> float:
        """How long the address must wait before it may try again; 0 where it may now."""
        ahead = self._due.get(address, now) - now
        busy_s = self._gap_s if self._under_way[address] >= self._burst else 0.0
        return max(ahead + self._gap_s - self._ahead_s, busy_s, 0.0)

    @contextmanager
    def attempt(self, address: str) -> Iterator[None]:
        """Something is tried from there, for as long as the block lasts."""
        self._under_way[address] += 1
        try:
            yield
        finally:
            self._under_way[address] -= 1
            if not self._under_way[address]:
                del self._under_way[address]

    def failed(self, address: str, now: float) -> None:
        """However often it fails, it has made up for it once ``burst`` failures would have happened evenly."""
        due = max(self._due.pop(address, now), now) + self._gap_s
        self._due[address] = min(due, now + self._ahead_s)  # in the order in which they failed last
        if len(self._due) > MOST_ADDRESSES:
            del self._due[next(iter(self._due))]


def network_of(address: str, ipv6_prefix: int = 64) -> str:
    """Whoever has one IPv6 address has all of its network's, and often those of a whole site (/48)."""
    try:
        network = ip_network(address)
    except ValueError:
        return address
    if not isinstance(network.network_address, IPv6Address):
        return address
    mapped = network.network_address.ipv4_mapped
    return str(network.supernet(new_prefix=ipv6_prefix)) if mapped is None else str(mapped)
