"""How long workers go on while their node hears nothing of the manager."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from ces_common.quantities import format_duration, parse_duration

STOP, KEEP = "stop", "keep"
DEFAULT = "5m"  # of a job file: a failover of the centre ends no worker, and a lost node's work moves in bounded time
LONGEST = 30 * 86400  # seconds


def _parse(value: object) -> str:
    """As it is stored: ``stop``, ``keep`` or a duration in its shortest form. Raises ValueError."""
    if value in (STOP, KEEP):
        return str(value)
    try:
        seconds = parse_duration(value)
    except ValueError as error:
        raise ValueError("must be 'stop', 'keep' or a duration like 5m") from error
    if not 0 < seconds <= LONGEST:
        raise ValueError(
            f"must be more than zero, and {format_duration(LONGEST)} at most; 'stop' ends workers with the lease, "
            "and 'keep' never does"
        )
    return format_duration(seconds)


Disconnect = Annotated[
    str,
    BeforeValidator(_parse),
    WithJsonSchema({"type": "string", "examples": [STOP, KEEP, "5m"]}),
]


def outlives_s(disconnect: str) -> float:
    """For how many seconds beyond their node's lease such workers go on; infinite for ``keep``."""
    if disconnect == STOP:
        return 0.0
    return math.inf if disconnect == KEEP else float(parse_duration(disconnect))
