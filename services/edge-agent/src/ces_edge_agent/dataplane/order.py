"""Carrying out an order: the share of each attempt is put in place whole, or stays as it was.

A document orders the networks of all jobs of a node at once. When a step fails, what was done for the attempts that
need it is taken back, last things first, and nothing more is done for them: what they had stays in force until the next
try. What others need goes on, so that a job that cannot be connected keeps no other from its rates or its new way.

What is no longer wanted goes last, when all that is wanted is in place. Where that fails, the rest of the same share
stays beside the new until the next try: a way that stays keeps its classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import structlog

from ces_edge_agent.dataplane.derive import NODE
from ces_edge_agent.dataplane.diff import Step
from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.objects import Key

log = structlog.get_logger()
Owners = Mapping[Key, Set[str]]


def carry_out(
    steps: Sequence[Step],
    shares: Owners,
    owners: Owners,
    failed: Mapping[str, str],
    perform: Callable[[Step], None],
) -> dict[str, str]:
    """``shares``: whose an object is, by this order or those before; what is nobody's is the node's own, and right by
    itself. ``owners``: who fails with an object; the node where nobody does. ``failed``: whose share cannot even be
    told, and why. ``perform`` raises DataPlaneError. Answers with all who failed."""
    failures = dict(failed)
    held = set(failures)
    done: list[Step] = []
    for step in steps:
        share = shares.get(step.item.key, set())
        if share and share <= held:
            continue
        try:
            perform(step)
        except DataPlaneError as error:
            log.warning("a step of the data plane failed", step=str(step), error=str(error))
            for owner in owners.get(step.item.key, {NODE}):
                failures.setdefault(owner, str(error))
            held |= failures.keys() | share
            if step.action != "delete":
                done = _take_back(done, shares, failures.keys(), perform)
        else:
            done.append(step)
    return failures


def inverse(step: Step) -> Step | None:
    """What takes a step back. None where nothing can: what was made anew had to go, and what went was not wanted."""
    if step.action == "add":
        return Step("delete", step.item)
    if step.action == "change" and step.old is not None:
        return Step("change", step.old, step.item)
    return None


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
