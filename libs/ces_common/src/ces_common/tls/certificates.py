"""The cluster's authority and the certificates of its servers, as files.

``authority.pem`` and ``authority.key`` are made at the first start, unless they were brought along. Where only the
certificate is, servers' certificates are brought along too. A server's file holds its key, its certificate, and what
certifies that, so that it is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Collection
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
from ces_common.tls.pins import certificates_in, fingerprint

AUTHORITY_LIFE: Final = timedelta(days=3650)
BEHIND: Final = timedelta(days=1)  # that a device's clock may be
RENEWED_AT: Final = 1 / 3  # of its life left

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Authority:
    """``pem``: its certificate, and what certifies that. ``key``: None where it is kept elsewhere."""

    pem: str
    certificate: x509.Certificate
    key: SigningKey | None

    @property
    def fingerprint(self) -> str:
        return fingerprint(certificates_in(self.pem)[0])


def init_authority(folder: Path) -> Authority:
    """The folder's authority; made if there is none. Raises OSError, and ValueError where its files are none's."""
    certificate, key_file = folder / "authority.pem", folder / "authority.key"
    if not certificate.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not key_file.exists():
            write_secret(key_file, _key_pem(ec.generate_private_key(ec.SECP256R1())))
        write_secret(certificate, _self_signed(_key_in(key_file)), mode=0o644)
    return load_authority(folder)


def load_authority(folder: Path) -> Authority:
    """Raises OSError, and ValueError where the files are no authority's."""
    file, key_file = folder / "authority.pem", folder / "authority.key"
    pem = file.read_text()
    held = certificates_in(pem)
    if not held:
        raise ValueError(f"{file} holds no certificate in PEM")
    certificate = x509.load_pem_x509_certificate(held[0].encode())
    key = _key_in(key_file) if key_file.exists() else None
    if key is not None and key.public_key() != certificate.public_key():
        raise ValueError(f"{key_file} is not the key of {file}")
    return Authority("".join(held), certificate, key)


def renew(
    file: Path, authority: Authority, names: Collection[str], life: timedelta, now: datetime, *, mode: int = 0o600
) -> bool:
    """Make a server's certificate for these host names and addresses where ``file`` holds none, or one of another
    authority, for other names, or that ends soon; whether it was made. Without the authority's key none is. ``mode``:
    of the file. Raises OSError, and ValueError for a name that no certificate can hold."""
    if authority.key is None or not _is_due(file, authority, names, life * RENEWED_AT, now):
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder("CES server", authority.certificate.subject, key)
        .not_valid_before(authority.certificate.not_valid_before_utc)  # renewed or not, late clocks take it
        .not_valid_after(min(now + life, authority.certificate.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    certificate = builder.sign(authority.key, SHA256()).public_bytes(Encoding.PEM).decode()
    write_secret(file, _key_pem(key) + certificate + authority.pem, mode=mode)
    return True


def _is_due(file: Path, authority: Authority, names: Collection[str], soon: timedelta, now: datetime) -> bool:
    try:
        held = x509.load_pem_x509_certificate(file.read_bytes())
        held.verify_directly_issued_by(authority.certificate)
        alternative = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return True
    known = {str(name.value) for name in alternative}
    return not known.issuperset(names) or held.not_valid_after_utc - now < soon


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
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
