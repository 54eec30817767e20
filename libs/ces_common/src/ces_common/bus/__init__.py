"""The bus: how services speak to each other. See ``port`` for what it promises."""

from ces_common.bus.nats import NatsBus
from ces_common.natsauth.credentials import Credentials

__all__ = ["Credentials", "NatsBus"]
