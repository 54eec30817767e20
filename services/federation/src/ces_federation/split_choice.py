"""Over which regions a job may be split, and what each of them is to hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ces_common.jobfile import ANY_REGION, JobFile
from ces_common.messages.pieces import Crossing, Piece
from ces_common.messages.regions import Border, Room, Totals
from ces_common.messages.split_queries import BorderRoom, RegionRoom, SplitAnswer, SplitQuery
from ces_federation.choice import Need, need_of

MOST_PAIRS = 4  # of regions, for which the small problem is solved
Refused = Mapping[str, int]
"""Region -> millicores of a part for which it had no place: it is asked for less."""


def candidates(
    file: JobFile, own: str, totals: Mapping[str, Totals], accepting: Iterable[str], refused: Refused
) -> list[SplitQuery]:
    """The small problems to solve, of home and one other region, those first whose border links have the most free. Two
    others may be joined as well, but their border link is for them alone. ``totals``: of this region, ``own``, and of
    those whose word counts now; ``accepting``: of these, the ones that take the job's tenant. No region has the whole
    job, so each is asked for less than all of it."""
    need = need_of(file)
    able = [name for name in sorted({*accepting} - {own}) if name in totals and _named(need, name)]
    found = []
    for region in able:
        one, other = sorted((own, region))
        there, back = _link(totals[one], other), _link(totals[other], one)
        if there is None or back is None:
            continue
        rooms = [_room(name, totals[name], need, refused) for name in (one, other)]
        if sum(room.free.cpu for room in rooms) < need.whole.cpu:
            continue
        links = [BorderRoom(src=one, dst=other, free=there.free), BorderRoom(src=other, dst=one, free=back.free)]
        found.append((-min(there.free, back.free), region, rooms, links))
    found.sort(key=lambda each: each[:2])
    return [SplitQuery(job=file, regions=rooms, borders=links) for *_, rooms, links in found[:MOST_PAIRS]]


def _named(need: Need, region: str) -> bool:
    return ANY_REGION in need.regions or region in need.regions


def _link(totals: Totals, region: str) -> Border | None:
    return next((each for each in totals.borders if each.region == region and each.up), None)


def _room(name: str, totals: Totals, need: Need, refused: Refused) -> RegionRoom:
    most = min(totals.free.cpu, need.whole.cpu - 1, refused.get(name, need.whole.cpu) - 1)
    free = Room(cpu=max(0, most), memory=totals.free.memory, gpu=totals.free.gpu)
    return RegionRoom(name=name, free=free, largest=totals.largest)


def pieces(answer: SplitAnswer) -> dict[str, Piece]:
    """Region -> its part. Raises ValueError for a flow that does not go straight from one region to the other."""
    tasks: dict[str, list[str]] = {}
    for task, region in answer.regions.items():
        tasks.setdefault(region, []).append(task)
    crossings: dict[str, list[Crossing]] = {region: [] for region in tasks}
    for flow in answer.flows:
        one, other = answer.regions[flow.src], answer.regions[flow.dst]
        if one == other:
            continue
        if flow.path != [one, other]:
            raise ValueError(f"flow {flow.src} -> {flow.dst} passes through {flow.path}")
        for here, there in ((one, other), (other, one)):
            crossings[here].append(Crossing(src=flow.src, dst=flow.dst, rate=flow.rate, region=there))
    return {region: Piece(tasks=tasks[region], crossings=crossings[region]) for region in sorted(tasks)}


def cpu_of(file: JobFile, piece: Piece) -> int:
    """Millicores that a part asks for."""
    mine = set(piece.tasks)
    return sum(task.cpu for task in file.expand_tasks() if task.name in mine)
