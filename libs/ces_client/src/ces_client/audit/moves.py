"""Moves of single tasks in an audit's books: what is held beside a job for a task that moves, and which copy is its."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ces_client.audit import plan_checks, promises
from ces_client.audit.inventory import Hop
from ces_client.audit.lifecycle import MOVE_STEPS, Allocation, Flow, Job, TaskMove
from ces_client.audit.usage import Usage


@dataclass(frozen=True)
class Shared:
    """What the books keep, and what they do: ``hold`` begins (1) or ends (-1) what an allocation holds; ``wrong_node``:
    why a node takes no work; ``links``: None for unknown ones."""

    allocations: dict[str, Allocation]
    addresses: Counter[tuple[str, int]]
    numbers: Counter[int]
    usage: Usage
    check: Callable[..., None]
    hold: Callable[[Allocation, int], None]
    wrong_node: Callable[[Mapping[str, None]], Iterable[str]]
    links: Callable[[], Mapping[Hop, int] | None]


class Moves:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def read(self, kind: str, job: Job, data: Mapping[str, Any], time: str) -> None:
        if kind == "committed":
            self._committed(job, data, time)
        else:
            self._changed(job, data)

    def _committed(self, job: Job, data: Mapping[str, Any], time: str) -> None:
        """What the move needs is held from now on."""
        shared, flows = self._shared, data.get("flows", [])
        shared.check(promises.STEP, _wrong_start(job, data))
        shared.check(promises.READY, shared.wrong_node({data["destination"]: None}))
        new, back = (Allocation.made(data[name], data["job"], job.attempt, time) for name in ("new", "back"))
        places = {shared.allocations[each].task: shared.allocations[each].node for each in job.allocations}
        for each in (new, back):
            used = [f"{each.task} gets {each.address}:{each.port}, which is in use"]
            shared.check(promises.ADDRESS, used if shared.addresses[each.address, each.port] else [])
            shared.allocations[each.id] = each
            shared.addresses[each.address, each.port] += 1
        shared.check(promises.ADDRESS, plan_checks.wrong_numbers(flows, shared.numbers), len(flows))
        shared.check(promises.RATE, plan_checks.wrong_rates(flows), len(flows))
        ends = places | {new.task: new.node}
        shared.check(promises.PATH, plan_checks.wrong_paths(ends, flows, shared.links()), len(flows))
        shared.hold(new, 1)
        spare = {flow["number"]: flow for flow in flows}
        self._carry(spare, 1)
        job.move = TaskMove(data["move"], "reserved", data["old"], new, back, spare)

    def _changed(self, job: Job, data: Mapping[str, Any]) -> None:
        """It went on, or is over."""
        move, state = job.move, data["state"]
        if move is None or move.id != data["move"]:
            self._shared.check(promises.STEP, [f"move {data['move']} goes on that is not under way"])
            return
        if data.get("dropped"):
            self._give_up(job, move, data["dropped"])
            return
        legal = data["previous"] == move.state and (state == "failed" or state in MOVE_STEPS.get(move.state, ()))
        wrong = (
            []
            if legal
            else [f"the move of {move.new.task} goes from {data['previous']} to {state}, and was {move.state}"]
        )
        self._shared.check(promises.STEP, wrong)
        before, move.state = move.state, state
        if state == "carrying":
            old = self._shared.allocations[move.old]
            live = [f"{old.task} is carried from {old.node} while it may run there"] if old.live else []
            self._shared.check(promises.TWICE, live)
        elif state == "starting":
            if move.back.id in self._shared.allocations:
                self._shared.hold(move.back, 1)
            self._replace(job, move.old, move.new.id)
            _exchange(job, move.flows)
            if move.back.id not in self._shared.allocations:  # it cannot go back
                self._give_up_flows(move)
        elif state == "returning":
            if before == "clearing":
                self._shared.check(promises.TWICE, _still_there(move.new))
                _exchange(job, move.flows)
                self._replace(job, move.new.id, move.back.id)
            else:
                if move.back.id in self._shared.allocations:
                    self._shared.hold(move.back, 1)
                self._replace(job, move.old, move.back.id)
                self._drop(job, move.new)
            self._give_up_flows(move)
        elif state not in MOVE_STEPS:
            for each in (move.new, move.back):
                self._drop(job, each)
            self._carry(move.flows, -1)
            job.move = None

    def _give_up(self, job: Job, move: TaskMove, dropped: Iterable[str]) -> None:
        """Some of what was held beside is given back before the move is over."""
        for each in dropped:
            if each in self._shared.allocations:
                self._drop(job, self._shared.allocations[each])
        if move.state != "stopping" or move.new.id in dropped:
            self._give_up_flows(move)

    def _give_up_flows(self, move: TaskMove) -> None:
        self._carry(move.flows, -1)
        move.flows = {}

    def _drop(self, job: Job, allocation: Allocation) -> None:
        """What was held beside and never came into use holds nothing any more."""
        if allocation.id in job.allocations or allocation.id not in self._shared.allocations:
            return
        if allocation.id in job.live:
            self._shared.hold(allocation, -1)
        elif allocation.state is None:  # it had an address, and no more
            self._shared.addresses[allocation.address, allocation.port] -= 1
        if allocation.state is None:
            del self._shared.allocations[allocation.id]

    def _replace(self, job: Job, old: str, new: str) -> None:
        """Without a new one, the task has none any more: its job leaves."""
        there = [new] if new in self._shared.allocations else []
        job.allocations = [name for each in job.allocations for name in (there if each == old else [each])]

    def _carry(self, flows: Mapping[int, Flow], sign: int) -> None:
        for number, flow in flows.items():
            self._shared.usage.carry(flow["path"], sign * flow["rate"])
            self._shared.numbers[number] += sign


def _wrong_start(job: Job, data: Mapping[str, Any]) -> Iterator[str]:
    who = f"the move of {data['task']}"
    if job.state != "running" or data["attempt"] != job.attempt:
        yield f"{who} begins at attempt {data['attempt']} while its job is {job.state} at {job.attempt}"
    if job.move is not None:
        yield f"{who} begins while {job.move.new.task} of its job moves"
    if data["old"] not in job.allocations:
        yield f"{who} begins where it does not run"


def _still_there(allocation: Allocation) -> list[str]:
    return [f"{allocation.task} goes back while it may run on {allocation.node}"] if allocation.live else []


def _exchange(job: Job, spare: dict[int, Flow]) -> None:
    """The task's flows take what is held beside, which holds what they had. Numbers stay."""
    others = {(flow["src"], flow["dst"]): number for number, flow in spare.items()}
    for number, flow in list(job.flows.items()):
        other = others.get((flow["src"], flow["dst"]))
        if other is not None:
            job.flows[number], spare[other] = (
                {**flow, "path": spare[other]["path"], "rate": spare[other]["rate"]},
                {**spare[other], "path": flow["path"], "rate": flow["rate"]},
            )
