"""Whether there is the tenant that a job names."""

from __future__ import annotations

from ces_common.jobfile import JobFile
from ces_common.queuefile import QueueFile
from ces_manager.errors import Invalid


def check_tenant(queue: QueueFile, job: JobFile) -> None:
    """Raises Invalid for a tenant that the queue's file does not list, where it lists any."""
    if not queue.admits(job.tenant):
        known = ", ".join(queue.names)
        raise Invalid(
            "tenant",
            f"no tenant is called {job.tenant!r}: name one of {known}, or have it added to the tenants in CES_QUEUE",
        )
