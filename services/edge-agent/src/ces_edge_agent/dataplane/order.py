"""Carrying out an order: the share of each attempt is put in place whole, or stays as it was.

A document orders the networks of all jobs of a node at once. When a step fails, what was done for the attempts that
need it is taken back, last things first, and nothing more is done for them: what they had stays in force until the next
try. What others need goes on, so that a job that cannot be connected keeps no other from its rates or its new way.

Nothing is promised twice for that. What makes room is done even for those who fail, and never taken back, since the
room may be another's already; where it cannot be made, nobody's class comes or is raised on that device. Classes of a
way that had to stay are lowered to what the order leaves free there. What goes along with a device or a shaper that
is made anew comes back for those who fail as well: it was theirs before. While somebody fails, nothing goes that may
be his: after a restart nobody knows whose the things are that this order does not want.

What is no longer wanted goes last, when all that is wanted is in place. Where that fails, the rest of the same share
stays beside the new until the next try: a way that stays keeps its classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import structlog

from ces_edge_agent.dataplane.derive import NODE, Derived
from ces_edge_agent.dataplane.diff import Step, claims, frees, makes_room
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.objects import ROOT, Device, KernelObject, Key, Route, Rule, ShapedClass
from ces_edge_agent.dataplane.shaping import is_of_flow, lowered

log = structlog.get_logger()
Owners = Mapping[Key, Set[str]]


def carry_out(
    steps: Sequence[Step],
    shares: Owners,
    derived: Derived,
    perform: Callable[[Step], None],
) -> dict[str, str]:
    """``shares``: whose an object is, by this order or those before; what is nobody's is the node's own, and right by
    itself. What is not in there may be anybody's. ``derived``: what the order wants. ``perform`` raises DataPlaneError.
    Answers with all who failed."""
    failures = dict(derived.failed)
    held = set(failures)
    done: list[Step] = []
    full: dict[str, str] = {}  # device -> why there is no room on it
    staying: list[KernelObject] = []
    for step in steps:
        share = shares.get(step.item.key, set())
        stays = share and share <= held and not (makes_room(step) or step.again)
        if stays or (failures.keys() - {NODE} and _may_be_a_jobs(step, shares)):
            if step.action == "delete":
                staying.append(step.item)
            continue
        try:
            if (claimed := claims(step)) and (reason := full.get(claimed.device)):
                raise DataPlaneError(f"cannot {step}: its room is not free yet: {reason}")
            perform(step)
        except DataPlaneError as error:
            log.warning("a step of the data plane failed", step=str(step), error=str(error))
            for owner in derived.owners.get(step.item.key, {NODE}):
                failures.setdefault(owner, str(error))
            held |= failures.keys() | share
            if kept := frees(step):
                full[kept.device] = str(error)
            if step.action == "delete":
                staying.append(step.item)
            else:
                done = _take_back(done, shares, failures.keys(), perform)
        else:
            done.append(step)
    _fit(staying, derived.items.values(), perform)
    return failures


def inverse(step: Step) -> Step | None:
    """What takes a step back. None where nothing can or may: what was made anew had to go, what went was not wanted,
    room that was made may be another's, and what came again was there before."""
    if makes_room(step) or step.again:
        return None
    if step.action == "add":
        return Step("delete", step.item)
    if step.action == "change" and step.old is not None:
        return Step("change", step.old, step.item)
    return None


def _may_be_a_jobs(step: Step, shares: Owners) -> bool:
    item = step.item
    if step.action != "delete" or item.key in shares:
        return False
    of_endpoint = isinstance(item, Device) and item.kind == "endpoint"
    return of_endpoint or isinstance(item, (Rule, Route)) or is_of_flow(item)


def _take_back(done: Sequence[Step], shares: Owners, failures: Set[str], perform: Callable[[Step], None]) -> list[Step]:
    """What remains done."""
    kept: list[Step] = []
    for step in reversed(done):
        share = shares.get(step.item.key, set())
        back = inverse(step) if share and share <= failures else None
        if back is None:
            kept.append(step)
            continue
        try:
            perform(back)
        except DataPlaneError as error:  # the next order finds it as it is
            log.warning("a step of the data plane could not be taken back", step=str(step), error=str(error))
    return kept[::-1]


def _fit(staying: Iterable[KernelObject], wanted: Iterable[KernelObject], perform: Callable[[Step], None]) -> None:
    """Lower the classes that stay beside what is wanted, so that all fit the link; where they do, nothing is done."""
    surplus: dict[str, list[ShapedClass]] = {}
    for item in staying:
        if isinstance(item, ShapedClass):
            surplus.setdefault(item.device, []).append(item)
    room: dict[str, int] = {}  # bytes/s
    for item in wanted:
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
            except DataPlaneError as error:  # the next order tries again
                log.warning("a class that stays could not be lowered", step=str(step), error=str(error))
