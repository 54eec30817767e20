"""The certificates of the API and of NATS: made where they are missing, made again long before they end, and taken up
by who serves with them. Connections stay. Of one that nothing here replaces it warns before its end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import structlog

from ces_common.bus.port import BusError
from ces_common.service import BadSetup
from ces_common.tls.certificates import Authority, init_authority, renew
from ces_manager.certificate_ends import CertificateEnds
from ces_manager.settings import ManagerSettings

log = structlog.get_logger()
LOOK_S: Final = 600.0  # at most, between two looks at the files
RETRY_S: Final = 5.0
GROUP_MAY_READ: Final = 0o640
"""NATS is another user: the folder of its certificate belongs to its group."""


class Broker(Protocol):
    async def reload(self) -> None:
        """Have it read its certificate again. Raises BusError."""


class Certificates:
    """``tls``: what the API is served with. ``broker``: None where nobody may tell it."""

    def __init__(
        self,
        settings: ManagerSettings,
        folder: Path,
        broker: Broker | None,
        now: Callable[[], datetime] = partial(datetime.now, UTC),
    ) -> None:
        """``now``: the time of day. Raises BadSetup where the folder's files cannot be used."""
        self._own, self._brokers = folder / "api.pem", settings.nats_certificate
        self._names, self._life = settings.server_names, timedelta(days=settings.certificate_days)
        self._broker, self._now, self._ends = broker, now, CertificateEnds()
        self._loaded = self._told = b""  # digests
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self.authority: Authority = init_authority(folder)
            self._renew()
            self._load()
        except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
            raise BadSetup(f"CES_TLS_DIR: {folder}: {error}") from error

    async def run(self) -> None:
        while True:
            pause_s = min(LOOK_S, self._life.total_seconds() / 20)
            try:
                await asyncio.to_thread(self._renew)
                self._load()  # here, where connections begin: no other thread may change what they begin with
                if not await self._tell_broker():
                    pause_s = min(pause_s, RETRY_S)
            except (OSError, ValueError) as error:
                log.error("the certificates cannot be renewed or read", error=str(error))
            await asyncio.sleep(pause_s)

    def _renew(self) -> None:
        """Raises OSError, ValueError."""
        now = self._now()
        if renew(self._own, self.authority, self._names, self._life, now):
            log.info("certificate made", server="api", names=self._names)
        if self._brokers and renew(self._brokers, self.authority, self._names, self._life, now, mode=GROUP_MAY_READ):
            log.info("certificate made", server="nats", names=self._names)
        renewed = self.authority.key is not None
        self._ends.authority(self.authority.certificate, now)
        self._ends.server("api", self._own, renewed, now)
        if self._brokers and self._brokers.exists():
            self._ends.server("nats", self._brokers, renewed, now)

    def _load(self) -> None:
        """Raises OSError."""
        if (digest := _digest(self._own)) != self._loaded:
            self.tls.load_cert_chain(self._own)
            self._loaded = digest

    async def _tell_broker(self) -> bool:
        """Whether it knows what its file says, or nobody can tell it."""
        if self._brokers is None or (digest := _digest(self._brokers)) == self._told:
            return True
        if self._broker is None:
            log.warning("restart NATS to have it take up its certificate: without CES_REVOCATION_KEY_FILE nobody can")
        else:
            try:
                await self._broker.reload()
            except BusError as error:
                log.warning("NATS could not be told of its certificate yet", error=str(error))
                return False
        self._told = digest
        return True


def certificates_from(settings: ManagerSettings, broker: Broker | None) -> Certificates | None:
    """None where the API is plain HTTP. Raises BadSetup."""
    if settings.tls_dir is None:
        log.warning("CES_TLS_DIR is not set: the API is plain HTTP, so keep it on this machine or behind a proxy")
        return None
    return Certificates(settings, settings.tls_dir, broker)


def _digest(file: Path) -> bytes:
    return sha256(file.read_bytes()).digest()
