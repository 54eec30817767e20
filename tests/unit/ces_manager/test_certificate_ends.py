"""Whoever brought certificates along is warned before they end; where the manager makes them, nobody is."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from ces_common.tls.certificates import init_authority, renew
from ces_common.tls.ends import METRIC, told_before
from ces_manager.certificates import Certificates
from ces_manager.settings import ManagerSettings

START = datetime.now(UTC).replace(microsecond=0)
LIFE = timedelta(days=200)
END = START + LIFE
DAY = timedelta(days=1)


class Site:
    """Certificates that somebody brought along, and the time of day there."""

    def __init__(self, folder: Path, key_is_here: bool = False) -> None:
        self.now = START
        self._tls, self._nats = folder / "tls", folder / "nats.pem"
        authority = init_authority(self._tls)
        for file in (self._tls / "api.pem", self._nats):
            assert renew(file, authority, ["manager"], LIFE, START)
        if not key_is_here:
            (self._tls / "authority.key").rename(folder / "authority.key")
        self._folder = folder
        self._settings = ManagerSettings(
            admin_token_file=folder, agent_signing_key_file=folder, tls_dir=self._tls, nats_certificate=self._nats
        )
        self._held: Certificates | None = None

    def replace(self, name: str, life: timedelta) -> None:
        """A certificate that is made elsewhere, from now on."""
        key = self._tls / "authority.key"
        (self._folder / "authority.key").rename(key)
        file = self._nats if name == "nats" else self._tls / f"{name}.pem"
        file.unlink()
        assert renew(file, init_authority(self._tls), ["manager"], life, self.now)
        key.rename(self._folder / "authority.key")

    def said(self, now: datetime) -> list[tuple[str, str]]:
        """The severity and the certificate of each warning at a look at this time."""
        return [(entry["log_level"], entry["certificate"]) for entry in self.look(now)]

    def look(self, now: datetime) -> list[MutableMapping[str, Any]]:
        self.now = now
        with capture_logs() as entries:
            if self._held is None:
                self._held = Certificates(self._settings, self._tls, None, lambda: self.now)
            else:
                self._held._renew()
        return [entry for entry in entries if "certificate" in entry]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


BOTH = [("warning", "api"), ("warning", "nats")]


def test_whoever_brought_certificates_along_is_warned_thirty_days_before(site: Site) -> None:
    assert site.said(START) == []
    assert site.said(END - 30 * DAY) == []
    warned = site.look(END - 30 * DAY + timedelta(minutes=1))
    assert [(entry["log_level"], entry["certificate"]) for entry in warned] == BOTH
    assert {(entry["ends"], entry["days"]) for entry in warned} == {(END.isoformat(), 29)}


def test_a_manager_that_starts_late_warns_at_once_and_says_when_it_is_too_late(tmp_path: Path) -> None:
    for name, age, severity in (("soon", -DAY, "warning"), ("late", DAY, "error")):
        (tmp_path / name).mkdir()
        assert {level for level, _ in Site(tmp_path / name).said(END + age)} == {severity}


def test_the_warning_comes_once_a_day(site: Site) -> None:
    first = END - 20 * DAY
    assert site.said(first) == BOTH
    assert site.said(first + timedelta(minutes=10)) == []
    assert site.said(first + timedelta(hours=23)) == []
    assert site.said(first + DAY) == BOTH
    assert site.said(first + DAY + timedelta(hours=23)) == []


def test_what_was_replaced_is_warned_of_no_more_and_what_was_replaced_badly_at_once(site: Site) -> None:
    assert site.said(END - 20 * DAY) == BOTH
    site.replace("api", LIFE)
    site.replace("nats", 3 * DAY)
    assert site.said(END - 20 * DAY + timedelta(minutes=10)) == [("warning", "nats")]


def test_nobody_is_warned_of_what_the_manager_replaces(tmp_path: Path) -> None:
    site = Site(tmp_path, key_is_here=True)
    assert site.said(END - DAY) == []
    assert metric("api", "manager") > END.timestamp()


def test_an_authority_is_told_sixty_days_before(tmp_path: Path) -> None:
    site = Site(tmp_path, key_is_here=True)
    end = init_authority(tmp_path / "tls").certificate.not_valid_after_utc
    assert site.said(end - 60 * DAY) == []
    assert site.said(end - 60 * DAY + timedelta(minutes=1)) == [("warning", "authority")]


def test_the_first_end_of_a_file_counts(site: Site, tmp_path: Path) -> None:
    site.replace("nats", 3 * DAY)
    short = (tmp_path / "nats.pem").read_text()
    site.replace("nats", LIFE)
    (tmp_path / "nats.pem").write_text((tmp_path / "nats.pem").read_text() + short)
    assert site.said(START + timedelta(minutes=1)) == [("warning", "nats")]


def test_a_metric_tells_the_end_of_each(site: Site) -> None:
    site.look(START)
    assert metric("api", "operator") == metric("nats", "operator") == END.timestamp()
    assert metric("authority", "operator") > (START + 3000 * DAY).timestamp()
    site.replace("nats", 3 * DAY)
    site.look(START)
    assert metric("nats", "operator") == (START + 3 * DAY).timestamp()


def test_the_alert_fires_as_long_before() -> None:
    rules = (Path(__file__).parents[3] / "deploy/monitoring/rules/alerts.yml").read_text()
    seconds = f"{told_before('api').days} * 86400"
    assert f'{METRIC}{{replaced_by="operator"}} - time() < {seconds}' in rules


def metric(certificate: str, by: str) -> float:
    found = REGISTRY.get_sample_value(METRIC, {"certificate": certificate, "replaced_by": by})
    assert found is not None
    return found
