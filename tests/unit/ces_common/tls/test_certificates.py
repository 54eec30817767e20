"""The cluster's authority, and the certificates of its servers."""

from __future__ import annotations

import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ces_common.tls.certificates import init_authority, load_authority, renew
from ces_common.tls.pins import certificates_in, fingerprint, trusting

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


def brought_along(folder: Path, **changes: Any) -> None:
    """An authority as other tools make them. ``changes``: of what it says it is."""
    key, day = ec.generate_private_key(ec.SECP256R1()), timedelta(days=1)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Example")])
    use = {"digital_signature", "key_cert_sign"} if changes.get("signs", True) else {"digital_signature"}
    kinds = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - 2 * day)
        .not_valid_after(changes.get("until", NOW + 30 * day))
        .add_extension(x509.BasicConstraints(changes.get("ca", True), None), critical=True)
        .add_extension(x509.KeyUsage(**{kind: kind in use for kind in kinds}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier(b"a name that no hash of the key is"), critical=False)
        .sign(key, SHA256())
    )
    folder.mkdir(exist_ok=True)
    (folder / "authority.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "authority.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_clients_take_what_a_brought_along_authority_certifies(tmp_path: Path) -> None:
    brought_along(tmp_path)
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    assert renew(file, authority, NAMES, LIFE, NOW)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(file)
    checking = trusting(authority.pem)
    checking.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = checking.wrap_bio(to_client, to_server, server_hostname=NAMES[0])
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.getpeercert()


@pytest.mark.parametrize("change", [{"ca": False}, {"signs": False}, {"until": NOW - timedelta(days=1)}])
def test_an_authority_that_no_client_would_take_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    brought_along(tmp_path, **change)
    with pytest.raises(ValueError, match=r"must be an authority's|has ended"):
        init_authority(tmp_path)


def test_a_certificate_that_ends_with_its_authority_is_not_made_again_and_again(tmp_path: Path) -> None:
    brought_along(tmp_path, until=NOW + timedelta(days=10))
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    assert renew(file, authority, NAMES, LIFE, NOW)
    assert not renew(file, authority, NAMES, LIFE, NOW)


def test_addresses_are_the_same_however_they_are_written_and_names_stay(tmp_path: Path) -> None:
    authority, file = init_authority(tmp_path), tmp_path / "api.pem"
    renew(file, authority, ["fd00:0::1", "fe80::1%eth0"], LIFE, NOW)
    assert not renew(file, authority, ["fd00::1", "fe80::1"], LIFE, NOW)
    assert renew(file, authority, ["other"], LIFE, NOW)
    assert not renew(file, authority, ["fd00::1", "other"], LIFE, NOW)


@pytest.mark.parametrize("name", ["https://x", "a b", "192.0.2.1:8080", "", "-a"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="neither a host's name nor an address"):
        renew(tmp_path / "api.pem", init_authority(tmp_path), [name], LIFE, NOW)


def test_managers_that_start_at_once_agree_on_one_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: init_authority(tmp_path / "tls").fingerprint, range(16)))
        assert len(set(made)) == 1
        authority, file = init_authority(tmp_path / "tls"), tmp_path / "api.pem"
        assert sum(pool.map(lambda _: renew(file, authority, NAMES, LIFE, NOW), range(16))) == 1


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
