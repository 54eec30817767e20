"""What a move of a task changes of the cluster as it was. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ces_common.task_move import OVER, MoveState
from ces_manager.replay.past import PastJob, Place, Size

S = MoveState


def move_begins(job: PastJob, data: Mapping[str, Any], held: Size) -> None:
    """``held``: for the new copy, and for the old one's return, which holds nothing yet."""
    back = data["back"]["id"]
    held.places[back] = replace(held.places[back], cpu=0, memory=0, gpu=0)
    job.beside = held


def move_goes_on(job: PastJob, data: Mapping[str, Any]) -> None:
    beside, state = job.beside, MoveState(data["state"])
    if beside is None:
        return
    if data.get("dropped"):
        present = job.now.places[data["allocation"]].node
        on = {place.node for name, place in beside.places.items() if name in data["dropped"]}
        beside.places = {name: place for name, place in beside.places.items() if name not in data["dropped"]}
        if on != {present}:  # else it is where the task leaves, and what is held leads elsewhere
            beside.flows.clear()
        return
    if state is S.STARTING:
        old = _leaves(job, data["task"])
        job.now.places[data["allocation"]] = beside.places.pop(data["allocation"])
        for name, place in list(beside.places.items()):
            beside.places[name] = _with_amounts(place, old)
        _exchange(job, beside)
        if not beside.places:  # it cannot go back
            beside.flows.clear()
    elif state is S.RETURNING:
        old = _leaves(job, data["task"])
        if data["previous"] == S.CLEARING:
            _exchange(job, beside)
        else:
            beside.places = {name: _with_amounts(place, old) for name, place in beside.places.items()}
        if data["allocation"] in beside.places:
            job.now.places[data["allocation"]] = beside.places[data["allocation"]]
        job.beside = Size()
    elif state in OVER:
        job.beside = None


def _leaves(job: PastJob, task: str) -> Place:
    """The task's present place, which is its no more."""
    name = next(name for name, place in job.now.places.items() if place.task == task)
    return job.now.places.pop(name)


def _with_amounts(place: Place, old: Place) -> Place:
    return replace(place, cpu=old.cpu, memory=old.memory, gpu=old.gpu)


def _exchange(job: PastJob, beside: Size) -> None:
    """The task's flows take what is held beside, which holds what they had."""
    spare = {(flow.src, flow.dst): flow for flow in beside.flows.values()}
    for flow in job.now.flows.values():
        other = spare.get((flow.src, flow.dst))
        if other is not None:
            flow.rate, other.rate = other.rate, flow.rate
            flow.path, other.path = other.path, flow.path
