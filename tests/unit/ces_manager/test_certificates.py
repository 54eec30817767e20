"""What the manager serves with, and keeps good for itself and for NATS."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from waiting import wait_until

from ces_common.bus.port import BusUnavailable
from ces_common.service import BadSetup
from ces_common.tls.certificates import init_authority
from ces_manager import certificates
from ces_manager.certificates import Certificates, certificates_from
from ces_manager.settings import ManagerSettings


class Broker:
    """Cannot be told as often as ``away`` says."""

    def __init__(self, away: int = 0) -> None:
        self._away = away
        self.told = 0

    async def reload(self) -> None:
        if self._away:
            self._away -= 1
            raise BusUnavailable("not yet")
        self.told += 1


def settings(folder: Path, **more: Any) -> ManagerSettings:
    return ManagerSettings(admin_token_file=folder, agent_signing_key_file=folder, **more)


def encrypted(folder: Path, **more: Any) -> ManagerSettings:
    return settings(folder, tls_dir=folder / "tls", nats_certificate=folder / "nats.pem", **more)


def names(file: Path) -> set[str]:
    held = x509.load_pem_x509_certificate(file.read_bytes())
    return {str(each.value) for each in held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value}


def test_certificates_are_good_for_every_name_that_is_told(tmp_path: Path) -> None:
    told = encrypted(
        tmp_path,
        http_host="::",
        nats_urls="tls://nats:4222",
        advertised_nats_urls="tls://192.0.2.1:4222,tls://[fd00::1]:4222",
        tls_names="manager, edge-master",
    )
    Certificates(told, tmp_path / "tls", Broker())
    wanted = {"localhost", "127.0.0.1", "::1", "nats", "192.0.2.1", "fd00::1", "manager", "edge-master"}
    assert names(tmp_path / "tls" / "api.pem") == names(tmp_path / "nats.pem") == wanted
    assert stat.S_IMODE((tmp_path / "tls" / "api.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "nats.pem").stat().st_mode) == 0o640


async def test_nats_is_told_once_for_each_certificate_however_often_it_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "RETRY_S", 0.01)
    monkeypatch.setattr(certificates, "LOOK_S", 0.01)
    broker = Broker(away=2)
    held = Certificates(encrypted(tmp_path), tmp_path / "tls", broker)
    loop = asyncio.create_task(held.run())
    assert await asyncio.to_thread(wait_until, lambda: broker.told == 1, 20, 0.01)
    (tmp_path / "nats.pem").unlink()
    assert await asyncio.to_thread(wait_until, lambda: broker.told == 2, 20, 0.01)
    assert loop.cancel()


async def test_a_broken_file_that_was_brought_along_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(certificates, "LOOK_S", 0.01)
    held = Certificates(settings(tmp_path, tls_dir=tmp_path / "tls"), tmp_path / "tls", None)
    (tmp_path / "tls" / "authority.key").unlink()
    kept = Certificates(settings(tmp_path, tls_dir=tmp_path / "tls"), tmp_path / "tls", None)
    assert kept.authority.fingerprint == held.authority.fingerprint
    (tmp_path / "tls" / "api.pem").write_text("nonsense")
    loop = asyncio.create_task(kept.run())
    said: list[str] = []

    def complains() -> bool:
        said.append(capsys.readouterr().out)
        return "cannot be renewed or read" in "".join(said)

    assert await asyncio.to_thread(wait_until, complains, 20, 0.01)
    assert not loop.done()
    loop.cancel()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    init_authority(tmp_path / "tls")
    (tmp_path / "tls" / "authority.pem").write_text("nonsense")
    with pytest.raises(BadSetup, match=r"CES_TLS_DIR: .*holds no certificate"):
        certificates_from(settings(tmp_path, tls_dir=tmp_path / "tls"), None)


def test_an_authority_without_key_and_certificate_is_named(tmp_path: Path) -> None:
    init_authority(tmp_path / "tls")
    (tmp_path / "tls" / "authority.key").unlink()
    with pytest.raises(BadSetup, match=r"CES_TLS_DIR: .*api\.pem"):
        certificates_from(settings(tmp_path, tls_dir=tmp_path / "tls"), None)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"nats_urls": "tls://a:1,nats://b:1"}, "begin all of them with tls://, or all with nats://"),
        ({"nats_urls": "tls://a:1", "advertised_nats_urls": "nats://a:1"}, "must begin with tls://"),
        ({"nats_urls": "nats://a:1", "advertised_nats_urls": "tls://a:1"}, "must begin with nats://"),
        ({"nats_certificate": "/x.pem"}, "CES_NATS_CERTIFICATE needs CES_TLS_DIR"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, wrong: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        settings(tmp_path, **wrong)


def test_without_a_folder_the_api_is_plain(tmp_path: Path) -> None:
    assert certificates_from(settings(tmp_path), None) is None
