"""Carrying out the steps of a document so that each attempt gets all of its network or keeps what it had.

A document describes the networks of all jobs on a node. When a step fails, the steps taken for the attempts that need
it are rolled back in reverse order, and no more are taken for them: what they had stays in force until the next try.
Other attempts go on, so that a job that cannot be connected does not keep others from their rates or their new paths.

Capacity is never promised twice by that:
- Steps that free capacity are taken even for attempts that fail, and never rolled back, since the capacity may be given
  to others already. Where such a step fails, no class is added or raised on that device.
- Classes of an old path that had to stay are lowered to what the document leaves free on the link.
- Objects lost with a device or shaper that is remade are restored for failed attempts as well.
- While any attempt fails, nothing is deleted that may be part of it: after a restart it is unknown whose objects those
  are that the document does not list.

Objects that are no longer desired are deleted last. Where that fails, the rest of the same attempt's old objects stay
until the next try, so that a path that stays keeps its classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import structlog

from ces_edge_agent.dataplane.plan.derivation import NODE, Derived
from ces_edge_agent.dataplane.plan.diff import Step, claims, frees, makes_room
from ces_edge_agent.dataplane.plan.objects import ROOT, Device, KernelObject, Key, Route, Rule, ShapedClass
from ces_edge_agent.dataplane.plan.shaping import is_of_flow, lowered
from ces_edge_agent.ports import DataPlaneError

log = structlog.get_logger()
Owners = Mapping[Key, Set[str]]


def carry_out(
    steps: Sequence[Step],
    shares: Owners,
    derived: Derived,
    perform: Callable[[Step], None],
) -> dict[str, str]:
    """Take the steps; returns owner -> reason for all that failed.

    ``shares``: the attempts that an object belongs to, by this document or earlier ones. An object with an empty set is
    the node's own; one that is missing may belong to any attempt. ``derived``: what the document asks for. ``perform``
    may raise DataPlaneError.
    """
    failures = dict(derived.failed)
    halted = set(failures)  # owners for whom no further step is taken
    done: list[Step] = []
    full: dict[str, str] = {}  # device -> why no capacity could be freed on it
    staying: list[KernelObject] = []
    for step in steps:
        share = shares.get(step.item.key, set())
        stays = share and share <= halted and not (makes_room(step) or step.again)
        if stays or (failures.keys() - {NODE} and _may_be_a_jobs(step, shares)):
            if step.action == "delete":
                staying.append(step.item)
            continue
        try:
            if (claimed := claims(step)) and (reason := full.get(claimed.device)):
                raise DataPlaneError(f"cannot {step}: its capacity is not free yet: {reason}")
            perform(step)
        except DataPlaneError as error:
            log.warning("a step of the data plane failed", step=str(step), error=str(error))
            for owner in derived.owners.get(step.item.key, {NODE}):
                failures.setdefault(owner, str(error))
            halted |= failures.keys() | share
            if kept := frees(step):
                full[kept.device] = str(error)
            if step.action == "delete":
                staying.append(step.item)
            else:
                done = _roll_back(done, shares, failures.keys(), perform)
        else:
            done.append(step)
    _fit(staying, derived.items.values(), perform)
    return failures


def inverse(step: Step) -> Step | None:
    """The step that undoes this one. None if there is none, or if it must stay: remade objects, deletions, freed
    capacity (which others may have by now), and restored objects."""
    if makes_room(step) or step.again:
        return None
    if step.action == "add":
        return Step("delete", step.item)
    if step.action == "change" and step.old is not None:
        return Step("change", step.old, step.item)
    return None


def _may_be_a_jobs(step: Step, shares: Owners) -> bool:
    """Whether the step deletes an object of unknown owner that may be part of an attempt."""
    item = step.item
    if step.action != "delete" or item.key in shares:
        return False
    of_endpoint = isinstance(item, Device) and item.kind == "endpoint"
    return of_endpoint or isinstance(item, (Rule, Route)) or is_of_flow(item)


def _roll_back(done: Sequence[Step], shares: Owners, failures: Set[str], perform: Callable[[Step], None]) -> list[Step]:
    """Undo the steps that only failed attempts need; returns the others."""
    kept: list[Step] = []
    for step in reversed(done):
        share = shares.get(step.item.key, set())
        back = inverse(step) if share and share <= failures else None
        if back is None:
            kept.append(step)
            continue
        try:
            perform(back)
        except DataPlaneError as error:  # the next document starts from there
            log.warning("a step of the data plane could not be taken back", step=str(step), error=str(error))
    return kept[::-1]


def _fit(staying: Iterable[KernelObject], desired: Iterable[KernelObject], perform: Callable[[Step], None]) -> None:
    """Lower the undesired classes that stay, if they and the desired ones do not fit on their link together."""
    surplus: dict[str, list[ShapedClass]] = {}
    for item in staying:
        if isinstance(item, ShapedClass):
            surplus.setdefault(item.device, []).append(item)
    room: dict[str, int] = {}  # device -> bit/s that the desired classes leave
    for item in desired:
        if isinstance(item, ShapedClass):
            room[item.device] = room.get(item.device, 0) + (item.rate if item.parent == ROOT else -item.rate)
    for device, classes in surplus.items():
        total = sum(item.rate for item in classes)
        for item in classes:
            less = lowered(item, item.rate * max(room[device], 0) // total) if device in room else item
            if less.rate >= item.rate:
                continue
            step = Step("change", less, item)
            try:
                perform(step)
            except DataPlaneError as error:  # the next document tries again
                log.warning("a class that stays could not be lowered", step=str(step), error=str(error))
