"""Which traffic classes of a device are a flow's. Flows are numbered throughout the cluster, where there may be more of
them than a device has classes for. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ces_common.messages.desired import FlowClass

LAST = 31991  # each has two of the 65535 classes of a device; a prime, so that a search in steps meets all of them


def class_numbers(classes: Iterable[FlowClass]) -> Mapping[tuple[str, int], int]:
    """(neighbour, flow's number) -> its number among the classes of the device towards that neighbour, 1..LAST.

    It follows from the flows on the device alone, so that a restarted agent finds its classes as they were. Where two
    would have the same, the flow of the higher number has another, and may move when the other ends. Flows for which a
    device has no class left are missing.
    """
    flows = defaultdict(set)
    for flow in classes:
        flows[flow.via].add(flow.number)
    return {(via, number): given for via, numbers in flows.items() for number, given in _on_device(numbers).items()}


def _on_device(numbers: Iterable[int]) -> dict[int, int]:
    owners: dict[int, int] = {}
    for number in sorted(numbers):
        rounds, place = divmod(number - 1, LAST)
        step = 1 + rounds % (LAST - 1)
        if len(owners) == LAST:
            break
        while place in owners:
            place = (place + step) % LAST
        owners[place] = number
    return {number: place + 1 for place, number in owners.items()}
