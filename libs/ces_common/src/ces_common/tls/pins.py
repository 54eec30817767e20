"""Tokens that say whom to trust: behind the secret stands the fingerprint of the cluster's authority.

Whoever holds such a token asks the server for its authority's certificate, which anybody on the way may replace, and
takes it only if it has that fingerprint. From then on TLS is checked by it. Only the standard library is needed.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import ssl
from typing import Final
from urllib.parse import urlsplit

PATH: Final = "/v1/authority"
LARGEST: Final = 64 * 1024  # bytes of the authority's certificates
ANSWER_S: Final = 10.0
_PINNED: Final = re.compile(r"(?P<secret>.+)\.(?P<fingerprint>[0-9a-f]{64})", re.DOTALL)
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Untrusted(Exception):
    """Who answers there is not whom the token names; the text says why and what to do."""


def pinned(secret: str, fingerprint: str | None) -> str:
    """The token with this secret, for a cluster whose authority has this fingerprint; the secret alone without one."""
    return secret if fingerprint is None else f"{secret}.{fingerprint}"


def secret_of(token: str) -> str:
    """What of a token is secret: what the server knows."""
    found = _PINNED.fullmatch(token)
    return found["secret"] if found else token


def fingerprint_of(token: str) -> str | None:
    """The fingerprint in a token; None where it names no authority."""
    found = _PINNED.fullmatch(token)
    return found["fingerprint"] if found else None


def certificates_in(text: str) -> list[str]:
    """The certificates of a PEM file, one text each."""
    return [found + "\n" for found in _CERTIFICATE.findall(text)]


def fingerprint(certificate: str) -> str:
    """SHA-256 of a certificate in PEM. Raises ValueError."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()


def trusting(authority: str | None) -> ssl.SSLContext:
    """What a client checks a server by: the authority's certificate in PEM; None: those that the machine trusts. Raises
    ssl.SSLError."""
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority may itself be certified by another
    return context


def said_authorities(url: str) -> list[str]:
    """What the server at an https URL says are its authority's certificates; unchecked. Raises OSError, and Untrusted
    where it says nothing of the kind."""
    parts = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # whoever answers proves nothing yet
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=ANSWER_S, context=context)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        body = answer.read(LARGEST)
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP answer: {error!r}") from error
    finally:
        connection.close()
    if answer.status >= 500:
        raise OSError(f"the server answers with {answer.status}")
    found = certificates_in(body.decode(errors="replace")) if answer.status == 200 else []
    if not found:
        raise Untrusted(f"{url} does not say which authority certifies it: is it a manager of CES?")
    return found


def authority_at(url: str, wanted: str) -> str:
    """The certificate with the fingerprint ``wanted``, as the server at an https URL says it. Raises OSError where
    nothing answers, Untrusted where another authority is named."""
    found = {}
    for certificate in said_authorities(url):
        try:
            found[fingerprint(certificate)] = certificate
        except ValueError as error:
            raise Untrusted(f"{url} names no certificate that can be read: {error}") from error
    if wanted not in found:
        raise Untrusted(
            f"{url} is certified by another authority (sha256:{next(iter(found))}) than the one that the token names "
            f"(sha256:{wanted}): somebody answers in its place, or the token is of another cluster"
        )
    return found[wanted]
