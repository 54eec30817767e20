"""Roles: what somebody who asks the API may do. Each may do all that those before it may."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """``viewer`` sees what its tenants have; ``submitter`` also runs their jobs; ``operator`` sees all tenants and runs
    the cluster; ``admin`` also gives out tokens."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether this role may do what ``other`` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)

    @property
    def has_tenants(self) -> bool:
        """Whether it is limited to some tenants."""
        return not self.includes(Role.OPERATOR)
