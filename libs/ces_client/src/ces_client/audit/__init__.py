"""An independent auditor that replays a cluster's event log and reports every violation it finds.

It shares no code with the services or with the rest of this package: it reads plain JSON and keeps its own books. So
it also finds what a mistake in the manager's checks or state tables would let pass.
"""

from ces_client.audit.books import Books, Event
from ces_client.audit.findings import KINDS, Finding
from ces_client.audit.inventory import Amounts, Inventory, JobRequest
from ces_client.audit.lifecycle import Allocation
from ces_client.audit.usage import Peak
from ces_client.audit.verdict import Verdict, verdict_of

__all__ = [
    "KINDS",
    "Allocation",
    "Amounts",
    "Books",
    "Event",
    "Finding",
    "Inventory",
    "JobRequest",
    "Peak",
    "Verdict",
    "verdict_of",
]
