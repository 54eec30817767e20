"""What an identity may submit. Pure."""

from __future__ import annotations

from ces_common.jobfile import JobFile
from ces_common.messages.identities import Identity
from ces_manager.errors import Invalid


def allowed(identity: Identity, job: JobFile) -> JobFile:
    """The job as this identity may submit it: what the file leaves out, its token says. Raises Invalid for another
    tenant, or a priority above the token's."""
    said: dict[str, object] = {}
    if identity.tenants is not None and not identity.sees(job.tenant):
        mine = ", ".join(identity.tenants)
        if "tenant" in job.model_fields_set:
            raise Invalid("tenant", f"token {identity.name} is for {mine}, not for {job.tenant}")
        if len(identity.tenants) > 1:
            raise Invalid("tenant", f"say for which tenant of {mine}: token {identity.name} is for all of these")
        said["tenant"] = identity.tenants[0]
    if job.priority > identity.max_priority:
        if "priority" in job.model_fields_set:
            raise Invalid(
                "priority", f"token {identity.name} may submit jobs of priority {identity.max_priority} at most"
            )
        said["priority"] = identity.max_priority
    return job.model_copy(update=said) if said else job
