"""How often somebody failed, by address. Pure."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network
from typing import Final

FAILURES_PER_S, BURST = 1.0, 50  # of one address
MOST_ADDRESSES: Final = 10_000


class FailureCounts:
    """Failures by address: ``per_s`` in the long run, ``burst`` at once."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._gap_s, self._ahead_s = 1 / per_s, burst / per_s
        self._due: dict[str, float] = {}  # address -> when all its failures would have happened evenly

    def wait_s(self, address: str, now: float) -> float:
        """How long the address must wait before it may try again; 0 where it may now."""
        ahead = self._due.get(address, now) - now
        return max(ahead + self._gap_s - self._ahead_s, 0.0)

    def failed(self, address: str, now: float) -> None:
        due = max(self._due.pop(address, now), now) + self._gap_s
        self._due[address] = due  # in the order in which they failed last
        if len(self._due) > MOST_ADDRESSES:
            self._due = {key: until for key, until in self._due.items() if until > now}
        if len(self._due) > MOST_ADDRESSES:
            del self._due[next(iter(self._due))]


def network_of(address: str) -> str:
    """Whoever has one IPv6 address has all of its network's."""
    try:
        network = ip_network(address)
    except ValueError:
        return address
    if not isinstance(network.network_address, IPv6Address):
        return address
    mapped = network.network_address.ipv4_mapped
    return str(network.supernet(new_prefix=64)) if mapped is None else str(mapped)
