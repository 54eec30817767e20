"""What fits into a heartbeat. Pure."""

from __future__ import annotations

from ces_common.messages.reports import MAX_HEARTBEAT, Heartbeat


def encoded(beat: Heartbeat) -> bytes:
    """The heartbeat as it is sent, with as many measurements as the manager takes: the lease is worth more."""
    data = beat.encode()
    while len(data) > MAX_HEARTBEAT:
        beat = beat.model_copy(
            update={
                name: getattr(beat, name)[: len(getattr(beat, name)) // 2] for name in ("workers", "links", "flows")
            }
        )
        data = beat.encode()
    return data
