"""What an identity may submit, and for whom. Pure."""

from __future__ import annotations

from ces_common.jobfile import DEFAULT_TENANT, JobFile
from ces_common.messages.identities import Identity
from ces_manager.errors import Invalid


def allowed(identity: Identity, job: JobFile) -> JobFile:
    """The job as this identity may submit it: what the file leaves out, its token says. Raises Invalid for another
    tenant, or a priority above the token's."""
    said: dict[str, object] = {}
    tenant = tenant_for(identity, job.tenant if "tenant" in job.model_fields_set else None)
    if tenant != job.tenant:
        said["tenant"] = tenant
    if job.priority > identity.max_priority:
        if "priority" in job.model_fields_set:
            raise Invalid(
                "priority", f"token {identity.name} may submit jobs of priority {identity.max_priority} at most"
            )
        said["priority"] = identity.max_priority
    return job.model_copy(update=said) if said else job


def tenant_for(identity: Identity, named: str | None) -> str:
    """The tenant for which an identity asks. ``named``: by the one who asks; None where nothing was said. Raises
    Invalid."""
    tenant = named or DEFAULT_TENANT
    if identity.tenants is None or identity.sees(tenant):
        return tenant
    mine = ", ".join(identity.tenants)
    if named is not None:
        raise Invalid("tenant", f"token {identity.name} is for {mine}, not for {named}")
    if len(identity.tenants) > 1:
        raise Invalid("tenant", f"say for which tenant of {mine}: token {identity.name} is for all of these")
    return identity.tenants[0]
