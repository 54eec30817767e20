"""An independent auditor that replays a cluster's event log and reports every violation it finds.

It shares no code with the services or with the rest of this package: it reads plain JSON and keeps its own books. So
it also finds what a mistake in the manager's checks or state tables would let pass.
"""

from ces_client.audit.books import Books, Event
from ces_client.audit.findings import Finding
from ces_client.audit.inventory import Amounts, Inventory, JobRequest
from ces_client.audit.lifecycle import Allocation
from ces_client.audit.promises import NOT_CHECKED, PROMISES, Promise
from ces_client.audit.usage import Peak
from ces_client.audit.verdict import Verdict, verdict_of

__all__ = [
    "NOT_CHECKED",
    "PROMISES",
    "Allocation",
    "Amounts",
    "Books",
    "Event",
    "Finding",
    "Inventory",
    "JobRequest",
    "Peak",
    "Promise",
    "Verdict",
    "verdict_of",
]
