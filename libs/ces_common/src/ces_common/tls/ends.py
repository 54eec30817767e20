"""How near the ends of certificates are told, by the manager that serves with them, to whoever has to replace them."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

METRIC: Final = "ces_certificate_end_timestamp_seconds"
AUTHORITY: Final = "authority"  # its name among the metric's certificates
BY_OPERATOR: Final = "operator"
BY_MANAGER: Final = "manager"


def told_before(certificate: str) -> timedelta:
    """How long before its end to warn. The authority's is longer, since everybody has to be told of another one."""
    return timedelta(days=60 if certificate == AUTHORITY else 30)
