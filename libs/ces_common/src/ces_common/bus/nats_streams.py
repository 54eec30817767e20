"""The streams and the bucket as CES needs them, made or corrected as often as one likes.

None admits direct gets, which the server answers to any subject at all, also from a replica that lags behind.
"""

from __future__ import annotations

from typing import Final

import nats.js.errors
import structlog
from nats.js import JetStreamContext, api

from ces_common import subjects

log = structlog.get_logger(__name__)

DAY_S: Final = 24 * 3600.0
EVENT_DAYS: Final = 7
DEAD_DAYS: Final = 30
EVENT_BYTES: Final = 128 * 2**20  # the oldest go; reserved by the server, so no more than a small disk has
DUPLICATE_WINDOW_S: Final = 600.0  # a relay that comes back later than this repeats itself; inboxes see to that

STREAMS: Final = (
    api.StreamConfig(
        name=subjects.EVENT_STREAM,
        description="CES facts",
        subjects=[subjects.ALL_EVENTS],
        storage=api.StorageType.FILE,
        max_age=EVENT_DAYS * DAY_S,
        max_bytes=EVENT_BYTES,
        duplicate_window=DUPLICATE_WINDOW_S,
        max_msgs_per_subject=-1,
        allow_direct=False,
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
        allow_direct=False,
    ),
    api.StreamConfig(
        name=subjects.DESIRED_STREAM,
        description="CES desired state, a key-value bucket",
        subjects=[f"{subjects.DESIRED_PREFIX}.>"],
        storage=api.StorageType.FILE,
        max_age=0,
        max_msgs_per_subject=1,
        discard=api.DiscardPolicy.NEW,
        allow_direct=False,
        allow_rollup_hdrs=True,
        deny_delete=True,
        duplicate_window=120.0,
        republish=api.RePublish(src=f"{subjects.DESIRED_PREFIX}.>", dest=f"{subjects.DESIRED_CHANGES}.>"),
    ),
)


def corrected(desired: api.StreamConfig, found: api.StreamConfig, replicas: int) -> api.StreamConfig | None:
    """What to change ``found`` to, None where it is as desired. An operator may have given it more replicas and bytes,
    and whatever CES does not speak of. Pure."""
    fields = {name: value for name, value in vars(desired).items() if value is not None}
    fields["num_replicas"] = max(replicas, found.num_replicas or 1)
    if desired.max_bytes is not None:
        fields["max_bytes"] = max(desired.max_bytes, found.max_bytes or 0)
    change = found.evolve(**fields)
    return None if change == found else change


async def provision(js: JetStreamContext, replicas: int) -> None:
    """Create what is missing, correct what differs. Raises the library's errors."""
    for desired in STREAMS:
        assert desired.name is not None
        try:
            found = await js.stream_info(desired.name)
        except nats.js.errors.NotFoundError:
            found = await js.add_stream(desired, num_replicas=replicas)
            log.warning("stream made", stream=desired.name, replicas=replicas)
        change = corrected(desired, found.config, replicas)
        if change is not None:
            await js.update_stream(change)
            log.warning("stream corrected", stream=desired.name)
