"""Tokens that say whom to trust: behind the secret stands the fingerprint of the cluster's authority.

Whoever holds such a token asks the server for its authority's certificate, which anybody on the way may replace, and
takes it only if it has that fingerprint. From then on TLS is checked by it. Only the standard library is needed.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

PATH: Final = "/v1/authority"
LARGEST: Final = 64 * 1024  # bytes of the authority's certificates
ANSWER_S: Final = 10.0
_PINNED: Final = re.compile(r"(?P<secret>.+)\.(?P<fingerprint>[0-9a-f]{64})", re.DOTALL)
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----")


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


def certificates_in(text: str) -> list[bytes]:
    """The certificates of a PEM file, as DER. Raises ValueError."""
    return [base64.b64decode("".join(found.split()), validate=True) for found in _CERTIFICATE.findall(text)]


def pem_of(certificate: bytes) -> str:
    """A certificate as PEM, encoded here: two readers of a text from elsewhere may see two certificates in it."""
    return ssl.DER_cert_to_PEM_cert(certificate)


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of a certificate (DER)."""
    return hashlib.sha256(certificate).hexdigest()


def trusting(authority: str | None) -> ssl.SSLContext:
    """What a client checks a server by: the authority's certificates in PEM; None: those that the machine trusts.
    Raises ValueError where there are none in it, ssl.SSLError."""
    held = None if authority is None else "".join(map(pem_of, certificates_in(authority)))
    if held == "":  # by which all that the machine trusts would be meant
        raise ValueError("it holds no certificate in PEM")
    context = ssl.create_default_context(cadata=held)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority may itself be certified by another
    return context


def said_authorities(url: str) -> list[bytes]:
    """What the server at an https URL says are its authority's certificates; unchecked. Raises OSError, and Untrusted
    where it says nothing of the kind."""
    parts = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # whoever answers proves nothing yet
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=ANSWER_S)
    with socket.create_connection((connection.host, connection.port), ANSWER_S) as plain, _ended_after(plain, ANSWER_S):
        connection.sock = context.wrap_socket(plain, server_hostname=connection.host)
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
    try:
        found = certificates_in(body.decode()) if answer.status == 200 else []
    except ValueError as error:
        raise Untrusted(f"{url} names no certificate that can be read: {error}") from error
    if not found:
        raise Untrusted(f"{url} does not say which authority certifies it: is it a manager of CES?")
    return found


def authority_at(url: str, wanted: str) -> str:
    """The certificate (PEM) with the fingerprint ``wanted``, as the server at an https URL says it. Raises OSError
    where nothing answers, Untrusted where another authority is named."""
    said = {fingerprint(each): each for each in said_authorities(url)}
    if wanted not in said:
        raise Untrusted(
            f"{url} is certified by another authority (sha256:{next(iter(said))}) than the one that the token names "
            f"(sha256:{wanted}): somebody answers in its place, or the token is of another cluster"
        )
    return pem_of(said[wanted])


@contextmanager
def _ended_after(connection: socket.socket, seconds: float) -> Iterator[None]:
    """Break the connection after ``seconds``: limits of single reads do not stop a peer that sends a byte now and
    then."""
    handle = connection.dup()

    def end() -> None:
        with suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        handle.close()
