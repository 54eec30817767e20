"""Whom clients trust: the authority that the token names, or that the user does, and nobody in the clear."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ces_client.errors import Unreachable, bad_field
from ces_client.http import CONNECT_S
from ces_common.hosts import is_loopback
from ces_common.natsauth.secret_files import write_secret
from ces_common.tls.pins import (
    Untrusted,
    authority_at,
    certificates_in,
    fingerprint,
    fingerprint_of,
    pem_of,
    said_authorities,
)

NOBODY = "check that the manager runs there, and that the URL is right"


def says_insecure(environment: Mapping[str, str]) -> bool:
    """Whether ``CES_INSECURE`` allows plain http to other machines."""
    return environment.get("CES_INSECURE", "").lower() in ("1", "true", "yes")


def check_encrypted(url: str, insecure: bool, remedy: str) -> None:
    """Raises BadInput for a URL at which the token would go through others' hands in the clear."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
        raise bad_field(f"{url} is in the clear", "url", "whoever is on the way would read the token", remedy)


def find_authority(url: str, token: str, named: str | None, confirm: Callable[[str], bool]) -> str | None:
    """The certificate (PEM) to check an https URL by; None where the machine trusts the server already. ``named``: the
    authority's fingerprint, if the user gave it; ``confirm``: asks the user whether to trust one.

    Raises BadInput, Unreachable."""
    wanted = fingerprint_of(token) if named is None else _plain(named)
    try:
        if wanted is not None:
            return authority_at(url, wanted)
        if _is_trusted(url):
            return None
        offered = said_authorities(url)[0]
        if confirm(fingerprint(offered)):
            return pem_of(offered)
    except Untrusted as error:
        raise bad_field(f"{url} is not to be trusted", "url", str(error), "ask who runs it for a token") from error
    except (OSError, ValueError) as error:
        raise Unreachable(url, str(error) or type(error).__name__, NOBODY) from error
    raise bad_field(
        f"Nobody has said whether to trust {url}",
        "fingerprint",
        f"its authority is sha256:{fingerprint(offered)}",
        "if whoever runs it says the same, add --fingerprint with it, or name the authority's file with --ca",
    )


def keep_authority(folder: Path, certificate: str) -> Path:
    """Write the certificate to a file of its own; returns where."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{fingerprint(certificates_in(certificate)[0])}.pem"
    write_secret(file, certificate)
    return file


def _plain(named: str) -> str:
    """A fingerprint as people copy it, from openssl, say."""
    text = named.strip().lower().removeprefix("sha256").lstrip(":= ").replace(":", "")
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise bad_field(
            f"{named!r} is no fingerprint", "fingerprint", "it is not 64 hexadecimal digits", "copy it again, SHA-256"
        )
    return text


def _is_trusted(url: str) -> bool:
    """Whether this machine trusts the server without being told to. Raises OSError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    with socket.create_connection((host, parts.port or 443), timeout=CONNECT_S) as plain:
        try:
            with ssl.create_default_context().wrap_socket(plain, server_hostname=host):
                return True
        except ssl.SSLCertVerificationError:
            return False
