"""A picture of the cluster as records by section and key, and what differs between two of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]  # what JSON can hold; all records of a section have the same fields
Section = Mapping[str, Record]
_MISSING = object()


@dataclass(frozen=True)
class Picture:
    """``event``: the number of the last one. ``jobs``: those that are not over, or still hold something;
    ``shortfalls``: flows whose link does not carry what they were given; each record of both names its tenant.
    ``counts``: tenant -> state -> how many of its jobs are kept in that state. ``region``: the cluster's name, where it
    is one of several."""

    version: int
    event: int
    at: str
    nodes: Section
    links: Section
    media: Mapping[str, int]
    jobs: Section
    shortfalls: Section
    counts: Mapping[str, Mapping[str, int]]
    region: str | None = None


def shown(picture: Picture, tenants: Collection[str] | None) -> dict[str, Any]:
    """All that somebody may see; fields that are None are left out. ``tenants``: whose jobs; None for all."""
    return {
        "at": picture.at,
        "version": picture.version,
        "event": picture.event,
        "nodes": _said(picture.nodes),
        "links": _said(picture.links),
        "media": picture.media,
        "jobs": _said(_of(picture.jobs, tenants)),
        "shortfalls": _said(_of(picture.shortfalls, tenants)),
        "counts": _counted(picture, tenants),
        **({} if picture.region is None else {"region": picture.region}),
    }


def changed(before: Picture, after: Picture, tenants: Collection[str] | None) -> dict[str, Any]:
    """What somebody who has seen ``before`` must be told to see ``after``: of each section the records that changed,
    with their fields that changed; None for one that is gone. Sections without change are left out."""
    sections = {
        "nodes": differing(before.nodes, after.nodes),
        "links": differing(before.links, after.links),
        "jobs": differing(_of(before.jobs, tenants), _of(after.jobs, tenants)),
        "shortfalls": differing(_of(before.shortfalls, tenants), _of(after.shortfalls, tenants)),
        "media": _differing_values(before.media, after.media),
        "counts": _differing_values(_counted(before, tenants), _counted(after, tenants)),
    }
    told = {"at": after.at, "version": after.version, "event": after.event}
    return told | {name: each for name, each in sections.items() if each}


def differing(before: Section, after: Section) -> dict[str, Record | None]:
    found: dict[str, Record | None] = {}
    for key, record in after.items():
        known = before.get(key)
        if known is None:
            found[key] = record
        elif known is not record and known != record:
            found[key] = {name: value for name, value in record.items() if known.get(name, _MISSING) != value}
    return found | {key: None for key in before if key not in after}


def _differing_values(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int | None]:
    news: dict[str, int | None] = {key: value for key, value in after.items() if before.get(key) != value}
    return news | {key: None for key in before if key not in after}


def _said(section: Section) -> dict[str, Record]:
    """Without what is None: of a large network that is half of it."""
    return {
        key: {name: value for name, value in record.items() if value is not None} for key, record in section.items()
    }


def _of(section: Section, tenants: Collection[str] | None) -> Section:
    """The records that are of these tenants."""
    if tenants is None:
        return section
    return {key: record for key, record in section.items() if record["tenant"] in tenants}


def _counted(picture: Picture, tenants: Collection[str] | None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for tenant, states in picture.counts.items():
        if tenants is None or tenant in tenants:
            for state, number in states.items():
                counts[state] = counts.get(state, 0) + number
    return counts
