"""The steps from the observed objects to the desired ones: a pure function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from ces_edge_agent.dataplane.plan.objects import (
    ROOT,
    Address,
    Device,
    Filter,
    KernelObject,
    Key,
    Queue,
    Route,
    Rule,
    ShapedClass,
    Shaper,
    WorkerEnd,
)

# Objects are created in this order (each kind needs some before it, and a path comes after the class of its traffic),
# and deleted in the opposite one.
_ORDER: dict[type, int] = {
    kind: place
    for place, kind in enumerate((Device, Address, WorkerEnd, Shaper, ShapedClass, Queue, Filter, Route, Rule))
}
_NODE_IDS = range(1, 0x1000)  # a u32 filter's number within its table has 12 bits


@dataclass(frozen=True, slots=True)
class Step:
    """``remake`` deletes and creates an object that cannot be changed in place; what the kernel removes along with it
    is put back by ``add`` steps of its own. ``old``: the present object, if it is changed in place. ``again``: the
    object exists, but goes with a link's device or shaper that is remade, and is added again."""

    action: Literal["add", "change", "remake", "delete"]
    item: KernelObject
    old: KernelObject | None = field(default=None, compare=False)
    again: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.action} {self.item}"


def diff(desired: Iterable[KernelObject], observed: Iterable[KernelObject]) -> list[Step]:
    """Steps in the order in which they must be taken. New objects come before old ones go, so that traffic whose path
    changes always has one. Objects that are right are not touched."""
    want = {item.key: item for item in desired}
    have: dict[Key, KernelObject] = {}
    surplus: list[KernelObject] = []  # a u32 filter may exist twice
    for item in observed:
        if item.key in have:
            surplus.append(item)
        else:
            have[item.key] = item

    devices = {item.name for item in want.values() if isinstance(item, Device) and _is_remade(item, have)}
    shapers = {item.device for item in want.values() if isinstance(item, Shaper) and _is_remade(item, have)} | devices
    ends = {item.name for item in want.values() if isinstance(item, Device) and item.kind == "endpoint"}
    lost = {key for key, item in have.items() if _goes_along(item, devices - ends, shapers - ends, set())}
    have = {key: item for key, item in have.items() if not _goes_along(item, devices, shapers, set())}
    surplus = [item for item in surplus if not _goes_along(item, devices, shapers, set())]

    forward: list[Step] = []
    for key, item in want.items():
        old = have.get(key)
        if old is None:
            forward.append(Step("add", item, again=key in lost))
        elif old == item:
            continue
        elif _must_remake(old, item):
            forward.append(Step("remake", item))
        elif isinstance(item, Filter) and isinstance(old, Filter):
            forward.append(Step("change", replace(item, handle=old.handle), old))
        else:
            forward.append(Step("change", item, old))
    forward.sort(key=_turn)
    forward = _with_handles(forward, [*have.values(), *surplus])

    backward = [*surplus, *(item for key, item in have.items() if key not in want and not _is_cable(item))]
    devices = {item.name for item in backward if isinstance(item, Device)}
    shapers = {item.device for item in backward if isinstance(item, Shaper)} | devices
    classes = {(item.device, item.minor) for item in backward if isinstance(item, ShapedClass)}
    backward = [item for item in backward if not _goes_along(item, devices, shapers, classes)]
    backward.sort(key=lambda item: _place(item), reverse=True)
    return forward + [Step("delete", item) for item in backward]


def shortens(step: Step) -> Queue | None:
    """The queue that the step shortens, if any."""
    item, old = step.item, step.old
    return item if isinstance(item, Queue) and isinstance(old, Queue) and item.limit < old.limit else None


def lowers(step: Step) -> ShapedClass | None:
    """The class whose rate or ceil the step lowers, if any."""
    item, old = step.item, step.old
    if not isinstance(item, ShapedClass) or not isinstance(old, ShapedClass):
        return None
    return item if item.rate < old.rate or item.ceil < old.ceil else None


def frees(step: Step) -> ShapedClass | None:
    """The class that the step lowers without raising its rate, if any."""
    item = lowers(step)
    return item if item is not None and isinstance(step.old, ShapedClass) and item.rate <= step.old.rate else None


def claims(step: Step) -> ShapedClass | None:
    """The class that the step adds, or whose guaranteed rate it raises, if any; classes at the root do not count."""
    item, old = step.item, step.old
    if not isinstance(item, ShapedClass) or item.parent == ROOT or step.action not in ("add", "change"):
        return None
    return item if not isinstance(old, ShapedClass) or item.rate > old.rate else None


def makes_room(step: Step) -> bool:
    """Whether the step frees capacity that may be promised to others already: it lowers a class, or shortens the queue
    or the sender's bursts to fit a lower class."""
    item, old = step.item, step.old
    if isinstance(item, WorkerEnd) and isinstance(old, WorkerEnd):
        return item.gso < old.gso and replace(old, gso=item.gso) == item
    return frees(step) is not None or shortens(step) is not None


def _turn(step: Step) -> tuple[int, int]:
    """Capacity is freed before it is given away: queues are shortened, then classes lowered, then others raised."""
    if shortens(step):
        return _ORDER[ShapedClass], -2
    return (_ORDER[ShapedClass], -1) if frees(step) else _place(step.item)


def _place(item: KernelObject) -> tuple[int, int]:
    """A class comes after its parent."""
    return _ORDER[type(item)], int(isinstance(item, ShapedClass) and item.parent != ROOT)


def _must_remake(old: KernelObject, new: KernelObject) -> bool:
    if isinstance(old, Device) and isinstance(new, Device):
        return (old.kind, old.tunnel, old.sandbox) != (new.kind, new.tunnel, new.sandbox)
    return isinstance(old, Shaper) and old != new


def _is_cable(item: KernelObject) -> bool:
    """A link device that others created. It stays even if it is not desired: the node at its other end may only be
    unknown yet, and nobody would create the device again."""
    return isinstance(item, Device) and item.kind == "link"


def _is_remade(item: KernelObject, have: dict[Key, KernelObject]) -> bool:
    old = have.get(item.key)
    return old is not None and _must_remake(old, item)


def _goes_along(item: KernelObject, devices: set[str], shapers: set[str], classes: set[tuple[str, int]]) -> bool:
    """Whether the kernel removes it together with one of these devices, shapers or classes. (A rule names a device but
    outlives it.)"""
    match item:
        case Filter() | ShapedClass():
            return item.device in shapers
        case Queue():
            return item.device in shapers or (item.device, item.minor) in classes
        case Shaper() | Address() | Route() | WorkerEnd():
            return item.device in devices
        case _:
            return False


def _with_handles(steps: list[Step], observed: list[KernelObject]) -> list[Step]:
    """Give each new filter an unused handle; adding it again then changes nothing instead of appending a second one."""
    taken: dict[tuple[str, int], set[int]] = {}
    for item in observed:
        if isinstance(item, Filter):
            taken.setdefault((item.device, item.priority), set()).add(item.handle & 0xFFF)
    result = []
    for step in steps:
        item = step.item
        if step.action == "add" and isinstance(item, Filter):
            used = taken.setdefault((item.device, item.priority), set())
            number = next((number for number in _NODE_IDS if number not in used), 0)
            used.add(number)
            step = replace(step, item=replace(item, handle=number))
        result.append(step)
    return result
