"""An auditor: reads a cluster's event log from its first line to its last and says what was not right.

It shares nothing with the services, not even their models or the rest of this package: it replays plain JSON and keeps
books of its own. So it finds what a mistake in the manager's checks, or in its tables of states, would let pass.
"""

from ces_client.audit.books import Books, Event
from ces_client.audit.findings import KINDS, Finding
from ces_client.audit.ground import Amounts, Asked, Ground, Hop
from ces_client.audit.lives import Allocation, Job
from ces_client.audit.room import Peak
from ces_client.audit.verdict import Verdict, audit, verdict_of

__all__ = [
    "KINDS",
    "Allocation",
    "Amounts",
    "Asked",
    "Books",
    "Event",
    "Finding",
    "Ground",
    "Hop",
    "Job",
    "Peak",
    "Verdict",
    "audit",
    "verdict_of",
]
