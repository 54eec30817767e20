"""What the steps of a data plane would make of a kernel's objects."""

from __future__ import annotations

from ces_edge_agent.dataplane.plan.diff import Step
from ces_edge_agent.dataplane.plan.objects import Device, Filter, KernelObject, Key, Queue, Rule, ShapedClass, Shaper


def take(step: Step, state: dict[Key, KernelObject]) -> None:
    """Change the state as one step does, which must find what it needs, and takes along what hangs on its object."""
    item = step.item
    if step.action == "add":
        assert item.key not in state, step
    else:
        assert item.key in state, step
    if step.action in ("remake", "delete"):
        for key in [key for key, other in state.items() if _hangs_on(other, item)]:
            del state[key]
    if step.action == "delete":
        del state[item.key]
    else:
        state[item.key] = item


def _hangs_on(other: KernelObject, item: KernelObject) -> bool:
    device = getattr(other, "device", None)
    match item:
        case Device():
            return device == item.name and not isinstance(other, Rule)
        case Shaper():
            return device == item.device and isinstance(other, (ShapedClass, Queue, Filter))
        case ShapedClass():
            return isinstance(other, Queue) and (other.device, other.minor) == (item.device, item.minor)
        case _:
            return False
