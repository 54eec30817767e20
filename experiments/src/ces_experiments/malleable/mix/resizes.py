"""How long resizes took: from the times in the event log, and what rank 0 says of its own end and start. Pure.

A resize begins with the scheduler's decision, whose moment is in the id that it gives the resize, and ends when the
manager knows that all workers of the new size run. What is left of that without the checkpoint that rank 0 writes on
SIGTERM is the control plane's share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ulid import ULID

from ces_experiments.common.ways import moment

Notes = Sequence[Mapping[str, Any]]
"""What rank 0 wrote down in all starts of a job: ``kind``, ``at`` in seconds since 1970, and more."""


@dataclass(frozen=True)
class Resize:
    """One that came to its end; seconds. ``commit``: from the decision until the manager has committed it. ``stop``:
    until nothing is left of the former workers; of that, ``saving`` is what rank 0 spent on its checkpoint.
    ``network``: until the network of the new size is in place. ``start``: until all new workers run. ``still``: from
    rank 0's SIGTERM until all workers take steps again; None where it does not tell."""

    job: str
    before: int
    size: int
    commit: float
    stop: float
    saving: float
    network: float
    start: float
    still: float | None

    @property
    def whole(self) -> float:
        return self.commit + self.stop + self.network + self.start

    @property
    def control(self) -> float:
        """The control plane's share."""
        return self.whole - self.saving


def resizes(events: Iterable[Mapping[str, Any]], notes: Mapping[str, Notes]) -> tuple[list[Resize], int]:
    """Those that ended in a log, and how many were committed and did not, for their job was over or lost its place
    meanwhile. ``notes``: by job's id."""
    open_: dict[str, tuple[Mapping[str, Any], dict[str, float]]] = {}
    found, given_up = list[Resize](), 0
    for event in events:
        _, _, aggregate, kind = event["type"].split(".")
        job = event["data"].get("job", "")
        if (aggregate, kind) == ("resize", "committed"):
            data = event["data"]
            open_[job] = data, {"decided": ULID.from_str(data["resize"]).timestamp, "committed": moment(event)}
        if job not in open_:
            continue
        data, times = open_[job]
        if (aggregate, kind) == ("resize", "ended"):
            times["ended"] = moment(event)
            if not event["data"]["done"]:
                del open_[job]
                given_up += 1
        elif aggregate == "job" and "ended" in times:
            if kind == "starting":
                times["starting"] = moment(event)
            elif kind == "running" and "starting" in times:
                found.append(_resize(data, times, moment(event), notes.get(job, ())))
                del open_[job]
            elif kind not in ("waiting", "deadline"):
                del open_[job]
                given_up += 1
    return found, given_up + len(open_)


def _resize(data: Mapping[str, Any], times: Mapping[str, float], running: float, notes: Notes) -> Resize:
    told = _first(notes, "told", times["committed"], times["ended"])
    saved = None if told is None else _first(notes, "saved", told, times["ended"])
    steps = None if told is None else _first(notes, "steps", told)
    return Resize(
        data["job"],
        data["before"],
        data["size"],
        times["committed"] - times["decided"],
        times["ended"] - times["committed"],
        0.0 if told is None or saved is None else saved - told,
        times["starting"] - times["ended"],
        running - times["starting"],
        None if told is None or steps is None else steps - told,
    )


def _first(notes: Notes, kind: str, since: float, until: float = float("inf")) -> float | None:
    """When something was first noted within a time."""
    return min((note["at"] for note in notes if note["kind"] == kind and since <= note["at"] <= until), default=None)
