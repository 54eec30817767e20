"""Roles: what somebody who asks the API may do. Each may do all that those before it may, but for the auditor."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """``viewer`` sees what its tenants have; ``submitter`` also runs their jobs; ``auditor`` reads what an audit needs,
    of all tenants, and publishes what came out, and nothing else; ``operator`` sees all tenants, runs the cluster and
    may audit it; ``admin`` also gives out tokens."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether this role may do what ``other`` may."""
        order = list(Role)
        return self is other or (self is not Role.AUDITOR and order.index(self) >= order.index(other))

    @property
    def has_tenants(self) -> bool:
        """Whether it is limited to some tenants."""
        return self in (Role.VIEWER, Role.SUBMITTER)
