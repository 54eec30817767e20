"""What an audit finds: one broken rule each, and the kinds of rules that it checks."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = {
    "log": "the log has a gap, a repetition, or says two things",
    "step": "an illegal change of state",
    "plan": "a plan that differs from the job's request, or uses a node or link that it must not",
    "twice": "a task ran in two places at once",
    "overbooked": "more of a node, link or medium was held than plans may reserve",
    "held": "something was not released",
    "deadline": "a job that was refused for its deadline had a plan",
    "reservation": "a job started later than its reservation said",
}


@dataclass(frozen=True)
class Finding:
    """One broken rule, found while the event log is replayed (:mod:`ces_client.audit.books`). ``event``: the number of
    the event that shows it; ``kind``: a key of ``KINDS``; ``text``: what is wrong, for people."""

    event: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"event {self.event}: {self.text}"
