"""The bus: how services speak to each other. See ``port`` for what it promises."""

from ces_common.bus.memory import MemoryBroker, MemoryBus
from ces_common.bus.nats import NatsBus
from ces_common.bus.port import (
    DEAD_DELIVERIES,
    DEAD_DURABLE,
    DEAD_REASON,
    DEAD_SUBJECT,
    AccessRefused,
    Bus,
    BusError,
    BusUnavailable,
    Delivery,
    Message,
    NoResponder,
    PayloadTooLarge,
    Reject,
    RemoteError,
    RequestTimeout,
    Retry,
    Subscription,
)
from ces_common.natsauth.credentials import Credentials

__all__ = [
    "DEAD_DELIVERIES",
    "DEAD_DURABLE",
    "DEAD_REASON",
    "DEAD_SUBJECT",
    "AccessRefused",
    "Bus",
    "BusError",
    "BusUnavailable",
    "Credentials",
    "Delivery",
    "MemoryBroker",
    "MemoryBus",
    "Message",
    "NatsBus",
    "NoResponder",
    "PayloadTooLarge",
    "Reject",
    "RemoteError",
    "RequestTimeout",
    "Retry",
    "Subscription",
]
