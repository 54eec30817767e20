"""How a node's energy is divided among its allocations and the system. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def attributed(
    total: int, idle: int, busy_s: float, used: Mapping[str, float], reserved: Mapping[str, int], capacity: int
) -> dict[str, int]:
    """What each allocation's part of ``total`` is; what they leave is the system's. All in whole microjoules, so that
    parts and rest are the total exactly.

    ``idle``: what the machine uses without any work, which goes by what is ``reserved`` of its ``capacity``
    (millicores), whether it is used or not. The rest goes by CPU time: ``used`` seconds of each, of ``busy_s`` in all,
    by whomever."""
    idle = min(max(idle, 0), total)
    busy_s, capacity = max(busy_s, sum(used.values())), max(capacity, sum(reserved.values()))
    parts, left = {}, total
    for name in {**used, **reserved}:
        part = _share(total - idle, used.get(name, 0.0), busy_s) + _share(idle, reserved.get(name, 0), capacity)
        parts[name] = min(part, left)  # what is rounded down cannot be more, but for the last bit of a float
        left -= parts[name]
    return parts


def _share(energy: int, part: float, whole: float) -> int:
    return int(energy * (part / whole)) if part > 0 and whole > 0 else 0
