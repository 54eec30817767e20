"""The next free subnets, addresses, ports and flow numbers. They go round, so that a released one rests for a while:
its traffic classes and connections may linger. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv4Network
from itertools import chain

from ces_common.hosts import SUBNET_BITS, WORKERS

FIRST_HOST, LAST_HOST = 2, 254  # .1 is the node's router
WORKER_PORT = 29400  # where a worker has an address of its own
FIRST_PORT, LAST_PORT = 20000, 29399  # where it shares the host's
LAST_FLOW = 2**31 - 1  # each device numbers its traffic classes by itself


class Exhausted(Exception):
    """Nothing is left to hand out."""


def next_subnet(last: int, taken: Collection[str], block: IPv4Network = WORKERS) -> tuple[str, int]:
    """The next worker subnet of ``block`` after number ``last`` that no node has, and its number. Raises Exhausted."""
    used = set(taken)
    for number in _round(1, 1 << (SUBNET_BITS - block.prefixlen), last):
        subnet = f"{block[(number - 1) << (32 - SUBNET_BITS)]}/{SUBNET_BITS}"
        if subnet not in used:
            return subnet, number
    raise Exhausted(f"all subnets of {block} are taken")


def next_address(subnet: str, last_host: int, taken: Collection[str]) -> tuple[str, int]:
    """The next free worker address after host number ``last_host``, and its host number. Raises Exhausted."""
    base = IPv4Network(subnet).network_address
    addresses = set(taken)
    for host in _round(FIRST_HOST, LAST_HOST, last_host):
        address = str(base + host)
        if address not in addresses:
            return address, host
    raise Exhausted(f"all addresses of {subnet} are taken")


def next_port(last: int, taken: Collection[int]) -> int:
    """The next free port on a shared address. Raises Exhausted."""
    used = set(taken)
    for port in _round(FIRST_PORT, LAST_PORT, last):
        if port not in used:
            return port
    raise Exhausted(f"all ports from {FIRST_PORT} to {LAST_PORT} are taken")


def next_numbers(last: int, held: Callable[[int, int], Collection[int]], count: int) -> list[int]:
    """The next ``count`` free flow numbers after ``last``. ``held``: which of the numbers from one to another are
    taken; by far most are free."""
    numbers: list[int] = []
    while len(numbers) < count:
        first = last + 1 if last < LAST_FLOW else 1
        last = min(first + count - len(numbers) - 1, LAST_FLOW)
        taken = set(held(first, last))
        numbers += [number for number in range(first, last + 1) if number not in taken]
    return numbers


def _round(first: int, last: int, after: int) -> Iterator[int]:
    """``first..last``, beginning behind ``after``."""
    start = after + 1 if first <= after < last else first
    return chain(range(start, last + 1), range(first, start))
