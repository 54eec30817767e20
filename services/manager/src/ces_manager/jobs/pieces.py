"""One region's part of a job, written out: its tasks and flows, as an ordinary job has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ces_common.jobfile import Flow, JobFile, Task
from ces_common.messages.pieces import Part, Piece
from ces_manager.errors import Invalid


@dataclass(frozen=True, slots=True)
class Written:
    """``part``: what is kept of it beside its ``tasks``, which get new ranks, and its ``flows``."""

    part: Part
    tasks: list[Task]
    flows: list[Flow]


def written_out(file: JobFile, piece: Piece, borders: Mapping[str, str]) -> Written:
    """``borders``: region -> the node that stands here for its gateway. Raises Invalid for what is no part of the job,
    and for a region to which there is no border link."""
    whole = file.expand_tasks()
    mine = set(piece.tasks)
    if unknown := sorted(mine - {task.name for task in whole}):
        raise Invalid("piece.tasks", f"the job has no task {unknown[0]}")
    crossing = {(each.src, each.dst): each for each in piece.crossings}
    if len(mine) < len(piece.tasks) or len(crossing) < len(piece.crossings):
        raise Invalid("piece", "names something twice")
    flows: list[Flow] = []
    for flow in file.expand_flows():
        inside = (flow.src in mine) + (flow.dst in mine)
        if inside == 2:
            flows.append(flow)
        elif inside == 1:
            given = crossing.pop((flow.src, flow.dst), None)
            if given is None:
                raise Invalid("piece.crossings", f"says nothing of the flow {flow.src} -> {flow.dst}")
            if not flow.min <= given.rate <= flow.max:
                raise Invalid("piece.crossings", f"gives {flow.src} -> {flow.dst} {given.rate} bit/s")
            border = borders.get(given.region)
            if border is None:
                raise Invalid("piece.crossings", f"there is no border link between here and region {given.region}")
            # Both regions have promised this rate: neither may give it another by itself.
            fixed = {"min": given.rate, "max": given.rate, "mode": "strict", "border": border}
            flows.append(flow.model_copy(update=fixed))
    if crossing:
        src, dst = next(iter(crossing))
        raise Invalid("piece.crossings", f"{src} -> {dst} is no flow that leaves this part")
    tasks = [task for task in whole if task.name in mine]
    return Written(
        part=Part(**piece.model_dump(), ranks={task.name: task.rank for task in whole}),
        tasks=[task.model_copy(update={"rank": rank}) for rank, task in enumerate(tasks)],
        flows=flows,
    )
