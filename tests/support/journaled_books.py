"""What the managers' database says after each commit, written into the journal: since when a place is given away, what
of it is lent while its job is suspended, what was proposed and answered, and who was sent away for whom.

It is read as SQL and JSON: nothing of the manager's code stands between what it wrote and who judges it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from itertools import islice
from math import inf
from pathlib import Path

from run_auditor import Journal, Room

_LIVE = "state IN ('pending', 'running', 'stopping')"
_GONE = f"SELECT id FROM allocations WHERE NOT {_LIVE}"
_LENT = f"SELECT id FROM allocations WHERE {_LIVE} AND cpu = 0"
_HOLDERS = f"SELECT DISTINCT job FROM allocations WHERE {_LIVE} AND cpu > 0"
_EVENTS = "SELECT sequence, type, body FROM events WHERE sequence > ? ORDER BY sequence"
_CONSUMED = "SELECT rowid, id FROM inbox WHERE rowid > ? ORDER BY rowid"
_ROOM = "SELECT id, attempt, room_made, victims FROM jobs WHERE room_made > ? ORDER BY room_made"
_ANSWERS = {
    "ces.v1.plan.committed": "plan",
    "ces.v1.plan.rejected": "plan",
    "ces.v1.plan.revised": "revision",
    "ces.v1.revision.rejected": "revision",
    "ces.v1.preemption.rejected": "preemption",
    "ces.v1.resize.committed": "resize",
    "ces.v1.resize.rejected": "resize",
    "ces.v1.cpu.committed": "change",
    "ces.v1.cpu.rejected": "change",
}


class JournaledBooks:
    """``stored``: the proposals that have reached the stream, in order; ``now``: true time."""

    def __init__(self, file: Path, journal: Journal, stored: list[bytes], now: Callable[[], float]) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        self._journal, self._stored, self._now = journal, stored, now
        self._read = self._event = self._consumed = self._room = 0  # how far each was read
        self._seen: dict[str, int] = {}  # preemption -> the version that it was chosen from

    def close(self) -> None:
        self._database.close()

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self._database.execute(query, values).fetchall()

    def note(self) -> None:
        """To be called after each commit that changes more than leases."""
        for body in islice(self._stored, self._read, None):
            self._proposed(body)
        self._read = len(self._stored)
        self._note_places()
        consumed = self.ask(_CONSUMED, self._consumed)
        answered: set[str] = set()
        for sequence, kind, body in self.ask(_EVENTS, self._event):
            self._event = sequence
            if kind in _ANSWERS:
                answered.add(json.loads(body)["data"][_ANSWERS[kind]])
        made = self.ask(_ROOM, self._room)
        for job, attempt, version, victims in made:
            self._room = version
            ids = [message for _, message in consumed if message in self._seen]
            seen = min((self._seen[each] for each in ids), default=0)
            self._journal.rooms.append(Room(job, attempt, version, seen, dict.fromkeys(json.loads(victims), inf)))
            answered.update(ids)
        self._consumed = max([self._consumed, *(row for row, _ in consumed)])
        self._note_room()
        for each in answered:
            self._journal.answers[each] = self._journal.answers.get(each, 0) + 1

    def _proposed(self, body: bytes) -> None:
        event = json.loads(body)
        aggregate, data = event["type"].split(".")[2], event["data"]
        self._journal.asked.append(data["change" if aggregate == "cpu" else aggregate])
        if aggregate == "preemption":
            self._seen[data["preemption"]] = data["version"]

    def _note_places(self) -> None:
        now, journal = self._now(), self._journal
        for (place,) in self.ask(_GONE):
            journal.freed.setdefault(place, now)
        lent = {place for (place,) in self.ask(_LENT)}
        for place in lent - journal.lent.keys():
            journal.lent[place] = []
        for place, times in journal.lent.items():
            if (place in lent) is not (bool(times) and times[-1][1] == inf):
                if place in lent:
                    times.append((now, inf))
                else:
                    times[-1] = (times[-1][0], now)

    def _note_room(self) -> None:
        """Which of the victims hold no CPU since this commit."""
        waited_for = [room for room in self._journal.rooms if inf in room.victims.values()]
        if waited_for:
            holders = {job for (job,) in self.ask(_HOLDERS)}
            ((version,),) = self.ask("SELECT version FROM cluster")
            for room in waited_for:
                for victim, gave in room.victims.items():
                    if gave == inf and victim not in holders:
                        room.victims[victim] = version
