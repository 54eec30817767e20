"""The cluster's authority and the certificates of its servers, as files.

``authority.pem`` and ``authority.key`` are made at the first start, unless they were brought along. Where only the
certificate is, servers' certificates are brought along too. A server's file holds its key, its certificate, and what
certifies that, so that it is replaced as a whole.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ces_common.natsauth.secret_files import write_secret
from ces_common.tls.pins import certificates_in, fingerprint, pem_of

AUTHORITY_LIFE: Final = timedelta(days=3650)
BEHIND: Final = timedelta(days=1)  # that a device's clock may be
RENEWED_AT: Final = 1 / 3  # of its life left

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Authority:
    """``pem``: its certificate, and what certifies that. ``key``: None where it is kept elsewhere."""

    pem: str
    certificate: x509.Certificate
    key: SigningKey | None

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.certificate.public_bytes(Encoding.DER))


def init_authority(folder: Path) -> Authority:
    """The folder's authority; made if there is none. Raises OSError, and ValueError where its files are none's."""
    certificate, key_file = folder / "authority.pem", folder / "authority.key"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone_in(folder):
        if not certificate.exists():
            if not key_file.exists():
                write_secret(key_file, _key_pem(ec.generate_private_key(ec.SECP256R1())))
            write_secret(certificate, _self_signed(_key_in(key_file)), mode=0o644)
    return load_authority(folder)


def load_authority(folder: Path) -> Authority:
    """Raises OSError, and ValueError where the files are no authority's."""
    file, key_file = folder / "authority.pem", folder / "authority.key"
    held = certificates_in(file.read_text())
    if not held:
        raise ValueError(f"{file} holds no certificate in PEM")
    certificate = x509.load_der_x509_certificate(held[0])
    _check_certifies(file, certificate)
    key = _key_in(key_file) if key_file.exists() else None
    if key is not None and key.public_key() != certificate.public_key():
        raise ValueError(f"{key_file} is not the key of {file}")
    return Authority("".join(map(pem_of, held)), certificate, key)


def _check_certifies(file: Path, certificate: x509.Certificate) -> None:
    """Raises ValueError where clients would not take what it has signed."""
    extensions = certificate.extensions
    try:
        good = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        good = good and extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        good = False
    if not good:
        raise ValueError(f"{file} must be an authority's: basicConstraints CA:TRUE, keyUsage keyCertSign")
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise ValueError(f"{file} has ended at {certificate.not_valid_after_utc:%Y-%m-%d}: bring another one along")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Managers may share a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def renew(
    file: Path, authority: Authority, names: Collection[str], life: timedelta, now: datetime, *, mode: int = 0o600
) -> bool:
    """Make a server's certificate for these host names and addresses where ``file`` holds none, or one of another
    authority, without one of the names, or that ends soon; whether it was made. Names that it had stay: several
    managers may keep one file. Without the authority's key none is made. ``mode``: of the file. Raises OSError, and
    ValueError for a name that no certificate can hold."""
    if authority.key is None:
        return False
    with _alone_in(file.parent):
        held = _held(file, authority)
        known = set() if held is None else _names(held)
        wanted = {_general(name) for name in names}
        end = min(now + life, authority.certificate.not_valid_after_utc)
        if held is not None and wanted <= known and not _ends_soon(held, end, life, now):
            return False
        text = _certificate(authority, authority.key, sorted(wanted | known, key=lambda each: str(each.value)), end)
        write_secret(file, text, mode=mode)
    return True


def _certificate(authority: Authority, signing: SigningKey, names: Sequence[x509.GeneralName], end: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder("CES server", authority.certificate.subject, key)
        .not_valid_before(authority.certificate.not_valid_before_utc)  # renewed or not, late clocks take it
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_key_of(authority.certificate), critical=False)
    )
    return _key_pem(key) + builder.sign(signing, SHA256()).public_bytes(Encoding.PEM).decode() + authority.pem


def _key_of(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """As the issuer itself names its key, or no client finds it."""
    try:
        named = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = issuer.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey)  # as its private one is, by which it signs
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(named)


def _held(file: Path, authority: Authority) -> x509.Certificate | None:
    """The certificate in the file; None where there is none of this authority."""
    try:
        held = x509.load_pem_x509_certificate(file.read_bytes())
        held.verify_directly_issued_by(authority.certificate)
    except (OSError, ValueError, TypeError, InvalidSignature):
        return None
    return held


def _names(held: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _ends_soon(held: x509.Certificate, possible: datetime, life: timedelta, now: datetime) -> bool:
    """Whether a third of its life is left, and another one would last longer."""
    return held.not_valid_after_utc - now < life * RENEWED_AT and held.not_valid_after_utc < possible


def _key_in(path: Path) -> SigningKey:
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is no private key in PEM without a password: {error}") from error
    if not isinstance(key, SigningKey):
        raise ValueError(f"{path} must be an RSA key or one of an elliptic curve")
    return key


def _self_signed(key: SigningKey) -> str:
    now = datetime.now(UTC)
    builder = (
        _builder("CES authority", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "CES authority")]), key)
        .not_valid_before(now - BEHIND)
        .not_valid_after(now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )
    )  # fmt: skip
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def _builder(name: str, issuer: x509.Name, key: SigningKey) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _general(name: str) -> x509.GeneralName:
    """Raises ValueError."""
    try:
        return x509.IPAddress(ip_address(name.partition("%")[0]))
    except ValueError:
        pass
    if not _HOST_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is neither a host's name nor an address")
    return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
