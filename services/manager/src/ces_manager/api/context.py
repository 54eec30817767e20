"""The parts of the manager that routes use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from fastapi import Request

from ces_common.bus.port import Bus
from ces_common.db.outbox import events_after, latest_event
from ces_common.hosts import WORKERS
from ces_common.queuefile import QueueFile
from ces_common.rates import SenderRate
from ces_common.tls.certificates import Authority
from ces_common.tls.pins import pinned
from ces_manager.access.identities import Identities
from ces_manager.api.event_tail import EventTail
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.job_secrets.keys import SecretKeys
from ces_manager.live.feed import LiveFeed
from ces_manager.live.look import Looker
from ces_manager.measurements import Measurements
from ces_manager.network.prober import Prober
from ces_manager.nodes.applicants import APPLICATIONS_AT_ONCE, APPLICATIONS_PER_S
from ces_manager.nodes.credentials import RENEWAL_BURST, RENEWALS_PER_S, Issuer
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.nodes.revocation import Revoker
from ces_manager.queue.live import LiveQueue
from ces_manager.replay.state import Replays
from ces_manager.timeouts import Timeouts

DIVISIONS_PER_S, DIVISIONS_AT_ONCE = 0.5, 5  # graphs that one identity has divided
ADJUSTMENTS_PER_S, ADJUSTMENTS_AT_ONCE = 0.5, 5  # looks at running jobs that one identity asks for


@dataclass
class Context:
    database: Database
    bus: Bus
    timeouts: Timeouts
    measurements: Measurements
    failure_detector: FailureDetector
    revoker: Revoker
    prober: Prober
    broadcast: Broadcast
    queue: QueueFile
    live_queue: LiveQueue
    issuer: Issuer
    identities: Identities
    secret_keys: SecretKeys | None
    agents_nats_urls: list[str]
    trace_ratio: float = 0.0
    region: str | None = None  # this one's name, where it is one of several
    address_block: IPv4Network = WORKERS  # of workers
    authority: Authority | None = None  # None where the API is plain HTTP
    max_applicants: int = 0  # devices that may have applied to be made nodes, at a time
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    renewals: SenderRate = field(default_factory=lambda: SenderRate(RENEWALS_PER_S, RENEWAL_BURST))  # over REST, by key
    applications: SenderRate = field(default_factory=lambda: SenderRate(APPLICATIONS_PER_S, APPLICATIONS_AT_ONCE))
    divisions: SenderRate = field(default_factory=lambda: SenderRate(DIVISIONS_PER_S, DIVISIONS_AT_ONCE))  # by name
    adjustments: SenderRate = field(default_factory=lambda: SenderRate(ADJUSTMENTS_PER_S, ADJUSTMENTS_AT_ONCE))
    adjusting: set[str] = field(default_factory=set)  # by name: for whom a job is being looked at
    events: EventTail = field(init=False)
    live: LiveFeed = field(init=False)
    replays: Replays = field(init=False)

    def __post_init__(self) -> None:
        database = self.database
        self.events = EventTail(
            lambda after, which, limit: database.read(lambda tx: events_after(tx, after, which, limit)),
            lambda: database.read(latest_event),
            self.broadcast,
        )
        self.replays = Replays(database)
        looker = Looker(self.measurements, self.region)
        self.live = LiveFeed(lambda: database.read(lambda tx: looker.look(tx, database.clock.now())))

    def stop(self) -> None:
        """End all streams."""
        self.stopping.set()
        self.broadcast.wake()
        self.live.wake()

    def pinned(self, secret: str) -> str:
        """The token with this secret, which says whom its holder may trust."""
        return pinned(secret, self.authority.fingerprint if self.authority is not None else None)


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context
