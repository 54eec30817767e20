"""The streams and the bucket as CES needs them, made or corrected as often as one likes.

None admits direct gets, which the server answers to any subject at all, also from a replica that lags behind.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
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
VANISHING_S: Final = 1.0
YOUNG_S: Final = 60.0
NO_FOLDER: Final = "no such file or directory"
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


class HasNoFolder(Exception):
    """A stream that is there by name only."""


def corrected(desired: api.StreamConfig, found: api.StreamConfig, replicas: int) -> api.StreamConfig | None:
    """What to change ``found`` to, None where it is as desired. An operator may have given it more replicas and bytes,
    and whatever CES does not speak of. Pure."""
    fields = {name: value for name, value in vars(desired).items() if value is not None}
    fields["num_replicas"] = max(replicas, found.num_replicas or 1)
    if desired.max_bytes is not None:
        fields["max_bytes"] = max(desired.max_bytes, found.max_bytes or 0)
    change = found.evolve(**fields)
    return None if change == found else change


async def provision(js: JetStreamContext, replicas: int, seen: dict[str, bool]) -> None:
    """Create what is missing, correct what differs. ``seen``: streams that were there before, and whether they were
    sound. Raises HasNoFolder, when all others are right, and the library's errors. Not to be called twice at once.

    Where a stream is made while the former one of its name is being deleted, or two clients make it at once,
    nats-server 2.15 may take away its folder (about once in a hundred times): it is there then, and acknowledges
    nothing. So one that has vanished is given time to vanish, and one that is new is written once more, which fails
    where there is no folder."""
    unsound = []
    for desired in STREAMS:
        assert desired.name is not None
        try:
            found = await js.stream_info(desired.name)
        except nats.js.errors.NotFoundError:
            if seen.pop(desired.name, None) is not None:
                await asyncio.sleep(VANISHING_S)
            found = await js.add_stream(desired, num_replicas=replicas)
            log.warning("stream made", stream=desired.name, replicas=replicas)
        change = corrected(desired, found.config, replicas)
        if change is not None or not seen.get(desired.name, True) or _is_young(found):
            seen[desired.name] = await _written(js, change or found.config)
        if not seen.setdefault(desired.name, True):
            unsound.append(desired.name)
        elif change is not None:
            log.warning("stream corrected", stream=desired.name)
    if unsound:
        raise HasNoFolder(
            f"stream {unsound[0]} acknowledges nothing, since the broker has lost its folder: delete the stream as the "
            "broker's administrator, and it is made again"
        )


def _is_young(info: api.StreamInfo) -> bool:
    return info.created is not None and abs((datetime.now(UTC) - info.created).total_seconds()) < YOUNG_S


async def _written(js: JetStreamContext, config: api.StreamConfig) -> bool:
    """Whether the stream has a folder. Who may delete one that has none is the broker's administrator alone."""
    try:
        await js.update_stream(config)
    except nats.js.errors.ServerError as error:
        if NO_FOLDER not in (error.description or ""):
            raise
        return False
    return True
