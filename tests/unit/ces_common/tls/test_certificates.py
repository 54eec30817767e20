"""The cluster's authority, and the certificates of its servers."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ces_common.tls.certificates import init_authority, load_authority, renew
from ces_common.tls.pins import certificates_in, fingerprint

NOW = datetime.now(UTC)
LIFE = timedelta(days=90)
NAMES = ("edge-master", "192.0.2.1")


def held(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_an_authority_is_made_once_and_its_key_is_nobody_elses(tmp_path: Path) -> None:
    first = init_authority(tmp_path)
    assert init_authority(tmp_path).fingerprint == first.fingerprint
    assert stat.S_IMODE((tmp_path / "authority.key").stat().st_mode) == 0o600
    assert fingerprint(certificates_in((tmp_path / "authority.pem").read_text())[0]) == first.fingerprint


def test_a_certificate_is_made_once_for_its_names_and_holds_its_key(tmp_path: Path) -> None:
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    assert renew(file, authority, NAMES, LIFE, NOW)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(file)
    first = held(file)
    first.verify_directly_issued_by(authority.certificate)
    assert not renew(file, authority, NAMES, LIFE, NOW)
    assert not renew(file, authority, NAMES[:1], LIFE, NOW)
    assert held(file) == first


@pytest.mark.parametrize(("days", "due"), [(0, False), (59, False), (61, True), (100, True)])
def test_a_certificate_is_renewed_when_a_third_of_its_life_is_left(tmp_path: Path, days: int, due: bool) -> None:
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    renew(file, authority, NAMES, LIFE, NOW)
    assert renew(file, authority, NAMES, LIFE, NOW + timedelta(days=days)) == due


def test_a_certificate_is_made_again_for_another_name_for_another_authority_and_where_it_is_broken(
    tmp_path: Path,
) -> None:
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    renew(file, authority, NAMES, LIFE, NOW)
    assert renew(file, authority, [*NAMES, "fd00::1"], LIFE, NOW)
    assert renew(file, init_authority(tmp_path / "other"), NAMES, LIFE, NOW)
    file.write_text("nonsense")
    assert renew(file, authority, NAMES, LIFE, NOW)


def test_a_device_whose_clock_is_behind_takes_a_renewed_certificate(tmp_path: Path) -> None:
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    renew(file, authority, NAMES, LIFE, NOW + timedelta(days=70))
    assert held(file).not_valid_before_utc < NOW


def test_no_certificate_outlives_its_authority(tmp_path: Path) -> None:
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    renew(file, authority, NAMES, timedelta(days=3650), NOW + timedelta(days=365))
    assert held(file).not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_an_authority_without_its_key_makes_nothing(tmp_path: Path) -> None:
    init_authority(tmp_path)
    (tmp_path / "authority.key").unlink()
    assert not renew(tmp_path / "api.pem", load_authority(tmp_path), NAMES, LIFE, NOW)
    assert not (tmp_path / "api.pem").exists()


def test_files_that_are_no_authoritys_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    init_authority(one)
    init_authority(other)
    (one / "authority.key").write_bytes((other / "authority.key").read_bytes())
    with pytest.raises(ValueError, match=r"is not the key of"):
        init_authority(one)
    (one / "authority.key").write_text("nonsense")
    with pytest.raises(ValueError, match=r"no private key in PEM"):
        init_authority(one)
    odd = ed25519.Ed25519PrivateKey.generate()
    (one / "authority.key").write_bytes(odd.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ValueError, match=r"RSA key or one of an elliptic curve"):
        init_authority(one)
    (one / "authority.pem").write_text("nonsense")
    with pytest.raises(ValueError, match=r"holds no certificate"):
        init_authority(one)
