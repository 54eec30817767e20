"""The cluster as it was after one event: values, and how they become bytes and a picture. Pure."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from pydantic import TypeAdapter

from ces_common.resources import gpus_of
from ces_common.states import ALLOCATION_OVER, JOB_OVER, JOB_PLACED, JOB_WAITS
from ces_manager.live.picture import Picture, Record

RESOURCES: Final = ("cpu", "memory", "gpu")
Facts = dict[str, Any]  # what JSON can hold


@dataclass(slots=True)
class Place:
    """An allocation: what it holds in millicores, bytes and GPUs; before it is in use, what it is to hold. ``cards``:
    none in what was kept before there were any."""

    task: str
    node: str
    state: str
    cpu: int
    memory: int
    gpu: int
    cards: list[str] = field(default_factory=list)
    gpu_share: int = 0  # thousandths of the one card

    @property
    def live(self) -> bool:
        return self.state not in ALLOCATION_OVER


@dataclass(slots=True)
class Given:
    """What a flow has: rate in bit/s, and its path."""

    src: str
    dst: str
    min: int
    max: int
    rate: int
    path: list[str]


@dataclass(slots=True)
class Size:
    """What a job has at one size: allocations by id, flows by number."""

    places: dict[str, Place] = field(default_factory=dict)
    flows: dict[int, Given] = field(default_factory=dict)


@dataclass(slots=True)
class PastJob:
    """``facts``: as a job is listed. ``coming``: the size that it goes to, held beside what it has. ``beside``: what is
    held for a task of it that moves. ``waiting``: what it was last said to wait for, and how it stood in the queue."""

    facts: Facts
    now: Size = field(default_factory=Size)
    coming: Size | None = None
    beside: Size | None = None
    waiting: Facts | None = None

    @property
    def state(self) -> str:
        return str(self.facts["state"])

    @property
    def live(self) -> list[Place]:
        """What holds capacity."""
        return [place for place in self.now.places.values() if place.live]


@dataclass(slots=True)
class Past:
    """``sequence``: of the last event that is in it. Nodes by name, links by `src>dst`, jobs by id, in facts as the
    live picture has them, without what is derived from allocations and flows, and what was measured all the time."""

    sequence: int
    at: str
    nodes: dict[str, Facts]
    links: dict[str, Facts]
    media: dict[str, int]
    jobs: dict[str, PastJob]


_PAST: TypeAdapter[Past] = TypeAdapter(Past)


def packed(past: Past) -> bytes:
    return zlib.compress(_PAST.dump_json(past), 6)


def unpacked(body: bytes) -> Past:
    return _PAST.validate_json(zlib.decompress(body))


def picture_of(past: Past) -> Picture:
    """As the live picture shows it; nothing is known of shortfalls and of what was used."""
    nodes, links, flows = held_on_nodes(past), held_on_links(past), flows_on_links(past)
    counts: dict[str, Counter[str]] = {}
    for job in past.jobs.values():
        counts.setdefault(job.facts["tenant"], Counter())[job.state] += 1
    return Picture(
        version=past.sequence,
        event=past.sequence,
        at=past.at,
        nodes={
            name: facts
            | {f"{resource}_allocated": nodes[name, resource] for resource in RESOURCES}
            | {"gpu_allocated": gpus_of(nodes[name, "gpu"], nodes[name, "gpu_share"])}
            for name, facts in past.nodes.items()
        },
        links={key: facts | {"reserved": links[key], "flows": flows[key] or None} for key, facts in past.links.items()},
        media=past.media,
        jobs={each: _record(past.jobs[each]) for each in sorted(past.jobs)},
        shortfalls={},
        counts=counts,
    )


def held_on_nodes(past: Past) -> Counter[tuple[str, str]]:
    """What is held, by node and resource. Of a job between two sizes the larger of both counts, on each node; of cards
    each that is in one of them."""
    held = Counter[tuple[str, str]]()
    for job in past.jobs.values():
        held.update(_amounts(() if job.beside is None else job.beside.places.values()))
        if job.coming is None:
            held.update(_amounts(job.live))
        else:
            coming = job.coming.places.values()
            held.update(_amounts(job.live) | _amounts(coming) | _cards([*job.live, *coming]))
    return held


def held_on_links(past: Past) -> Counter[str]:
    """What is reserved in bit/s, by `src>dst`; between two sizes as on nodes."""
    held = Counter[str]()
    for job in past.jobs.values():
        present = _rates(job.now.flows)
        held.update(_rates({} if job.beside is None else job.beside.flows))
        held.update(present if job.coming is None else present | _rates(job.coming.flows))
    return held


def flows_on_links(past: Past) -> Counter[str]:
    """How many flows reserve a link, by `src>dst`; between two sizes as on nodes."""
    held = Counter[str]()
    for job in past.jobs.values():
        present = _rates(job.now.flows, lambda rate: int(rate > 0))
        held.update(_rates({} if job.beside is None else job.beside.flows, lambda rate: int(rate > 0)))
        coming = Counter[str]() if job.coming is None else _rates(job.coming.flows, lambda rate: int(rate > 0))
        held.update(present | coming)
    return held


def flows_of(past: Past) -> Iterator[tuple[str, int, Given]]:
    """Job, number and what it has, of each flow that is in use."""
    for name, job in past.jobs.items():
        for number, flow in job.now.flows.items():
            yield name, number, flow


def settle(past: Past, name: str) -> None:
    """Once nothing of a job holds capacity, one that is over is not shown any more, and one that waits has no place."""
    job = past.jobs.get(name)
    if job is None or job.state in JOB_PLACED or job.live:
        return
    if job.state in JOB_OVER:
        del past.jobs[name]
    elif job.state in JOB_WAITS:
        job.now = Size()


def _record(job: PastJob) -> Record:
    places = job.now.places.values()
    waiting = job.waiting if job.state in JOB_WAITS else None
    return job.facts | {"nodes": sorted({place.node for place in places}), "waiting": waiting}


def _cards(places: Iterable[Place]) -> Counter[tuple[str, str]]:
    """How many different ones, by node."""
    return Counter((node, "gpu") for node, _ in {(place.node, card) for place in places for card in place.cards})


def _amounts(places: Any) -> Counter[tuple[str, str]]:
    held = Counter[tuple[str, str]]()
    for place in places:
        for resource in (*RESOURCES, "gpu_share"):
            held[place.node, resource] += getattr(place, resource)
    return held


def _rates(flows: Mapping[int, Given], share: Callable[[int], int] = int) -> Counter[str]:
    """By link, the sum of what ``share`` makes of each flow's rate."""
    held = Counter[str]()
    for flow in flows.values():
        for src, dst in pairwise(flow.path):
            held[f"{src}>{dst}"] += share(flow.rate)
    return held
