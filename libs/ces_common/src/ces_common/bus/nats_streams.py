"""The streams and the bucket as CES needs them, made or corrected as often as one likes."""

from __future__ import annotations

from typing import Final

import nats.js.errors
from nats.js import JetStreamContext, api

from ces_common import subjects

DAY_S: Final = 24 * 3600.0
EVENT_DAYS: Final = 7
DEAD_DAYS: Final = 30
DUPLICATE_WINDOW_S: Final = 600.0  # a relay that comes back later than this repeats itself; inboxes see to that

_NAME_IN_USE: Final = 10058

STREAMS: Final = (
    api.StreamConfig(
        name=subjects.EVENT_STREAM,
        description="CES facts",
        subjects=[subjects.ALL_EVENTS],
        storage=api.StorageType.FILE,
        max_age=EVENT_DAYS * DAY_S,
        duplicate_window=DUPLICATE_WINDOW_S,
        max_msgs_per_subject=-1,
    ),
    api.StreamConfig(
        name=subjects.DEAD_STREAM,
        description="CES messages that nobody could handle",
        subjects=[subjects.ALL_DEAD],
        storage=api.StorageType.FILE,
        max_age=DEAD_DAYS * DAY_S,
        duplicate_window=DUPLICATE_WINDOW_S,
        max_msgs=100_000,
        max_msgs_per_subject=-1,
    ),
    api.StreamConfig(
        name=subjects.DESIRED_STREAM,
        description="CES desired state, a key-value bucket",
        subjects=[f"{subjects.DESIRED_PREFIX}.>"],
        storage=api.StorageType.FILE,
        max_age=0,
        max_msgs_per_subject=1,
        discard=api.DiscardPolicy.NEW,
        allow_direct=True,
        allow_rollup_hdrs=True,
        deny_delete=True,
        duplicate_window=120.0,
    ),
)


async def provision(js: JetStreamContext) -> None:
    """Create what is missing, correct what differs. Raises the library's errors."""
    for config in STREAMS:
        try:
            await js.add_stream(config)
        except nats.js.errors.BadRequestError as error:
            if error.err_code != _NAME_IN_USE:
                raise
            await js.update_stream(config)
