"""Hears what the schedulers of a cluster propose."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import Message
from ces_common.natsauth import read_credentials
from ces_experiments.control_plane.queue.answers import NAMES, Proposal, proposal_of
from ces_testbed.cluster import Cluster
from ces_testbed.services import SCHEDULER


@asynccontextmanager
async def proposals(cluster: Cluster) -> AsyncIterator[dict[str, Proposal]]:
    """By their ids, as they come."""
    heard: dict[str, Proposal] = {}

    async def hear(message: Message) -> None:
        found = proposal_of(json.loads(message.data))
        heard[found.id] = found

    credentials = read_credentials(cluster.layout.credentials(SCHEDULER))
    bus = NatsBus(cluster.layout.nats_url, name=SCHEDULER, credentials=credentials, tls=cluster.layout.tls())
    await bus.connect()
    try:
        for kind in NAMES:
            await bus.subscribe(subjects.events(kind, "proposed"), hear)
        yield heard
    finally:
        await bus.close()
