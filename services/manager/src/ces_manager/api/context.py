"""What the routes work with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from fastapi import Request

from ces_common.bus.port import Bus
from ces_common.natsauth import SigningKey
from ces_common.queuefile import QueueFile
from ces_manager.api.streams import Bell
from ces_manager.desk import Desk
from ces_manager.live_queue import LiveQueue
from ces_manager.liveness import Vigil
from ces_manager.measurements import Measurements
from ces_manager.policy import Policy
from ces_manager.probing import Probing
from ces_manager.revoking import Revoking


@dataclass
class Context:
    desk: Desk
    bus: Bus
    policy: Policy
    measurements: Measurements
    vigil: Vigil
    revoking: Revoking
    probing: Probing
    bell: Bell
    queue: QueueFile
    live_queue: LiveQueue
    agent_signing_key: SigningKey
    agents_nats_urls: list[str]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context
