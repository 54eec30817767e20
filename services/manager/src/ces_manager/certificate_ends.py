"""When certificates end: a metric of each, and a warning of those that nothing here replaces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from prometheus_client import Gauge

from ces_common.tls.ends import AUTHORITY, BY_MANAGER, BY_OPERATOR, METRIC, told_before
from ces_common.tls.pins import certificates_in

log = structlog.get_logger()
AGAIN: Final = timedelta(days=1)  # between two warnings of one certificate
WHO = ["certificate", "replaced_by"]
_ends = Gauge(METRIC, "When it ends, as Unix time, and who replaces it before", WHO)


class CertificateEnds:
    """Warns once a day, and again where another end is met."""

    def __init__(self) -> None:
        self._warned: dict[str, tuple[datetime, datetime]] = {}  # of which end, and when

    def authority(self, certificate: x509.Certificate, now: datetime) -> None:
        self._look(AUTHORITY, certificate.not_valid_after_utc, False, now)

    def server(self, name: str, file: Path, renewed: bool, now: datetime) -> None:
        """``renewed``: the manager makes another one in time. A file without certificates is left to those who need it.
        Raises OSError, ValueError."""
        ends = [x509.load_der_x509_certificate(held).not_valid_after_utc for held in certificates_in(file.read_text())]
        if ends:  # what certifies it may end before it
            self._look(name, min(ends), renewed, now)

    def _look(self, name: str, end: datetime, renewed: bool, now: datetime) -> None:
        _ends.labels(name, BY_MANAGER if renewed else BY_OPERATOR).set(end.timestamp())
        if renewed or end - now >= told_before(name):
            self._warned.pop(name, None)
            return
        warned_of, at = self._warned.get(name, (None, now))
        if warned_of == end and now - at < AGAIN:
            return
        self._warned[name] = (end, now)
        told = {"certificate": name, "ends": end.astimezone(UTC).isoformat(), "see": "docs/tls.md"}
        if end <= now:
            log.error("a certificate has ended: whoever checks it takes it no more; replace it", **told)
        else:
            log.warning("a certificate ends soon, and nothing here replaces it", days=(end - now).days, **told)
