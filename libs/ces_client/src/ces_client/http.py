"""Requests to the manager: retried where a repetition is harmless, errors mapped to this package's."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import stamina
from pydantic import ValidationError

from ces_client.errors import ApiError, CesError, Unreachable, bad_field
from ces_client.pinned import PinnedTransport
from ces_common.hosts import is_here
from ces_common.messages.api import Problem
from ces_common.tls.pins import fingerprint_of, trusting

TRY_AGAIN = frozenset({429, 502, 503, 504})
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
BAD_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"  # trying again does not help
CONNECT_S = 5.0
ANSWER_S = 30.0
PATIENCE_S = 30.0  # longer than a manager takes to restart
LONGEST_WAIT_S = 3.0  # between two attempts
LONGEST_PAUSE_S = 10.0  # of a Retry-After that is heeded


class Busy(Exception):
    """An answer that asks to try again later."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.status_code)
        self.response = response

    @property
    def pause_s(self) -> float | None:
        text = self.response.headers.get("retry-after", "")
        return min(float(text), LONGEST_PAUSE_S) if text.isdigit() else None


class Http:
    """The connection to a manager. ``verify``: False, True or the path of a CA file, to check its certificate by; True:
    by the authority that the token names, else by those that the machine trusts.
    ``patience_s``: how long harmless requests are repeated while nothing answers; ``answer_s``: how long one may take.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        verify: bool | str = True,
        transport: httpx.BaseTransport | None = None,
        patience_s: float = PATIENCE_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        host = host_of(url)
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
            raise bad_field("The token cannot be sent", "token", "it has characters that no token has", "copy it again")
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        pin = fingerprint_of(token or "") if urlsplit(url).scheme == "https" else None
        if pin is not None and verify is True and transport is None:
            transport = PinnedTransport(self.url, pin)
        self._client = httpx.Client(
            base_url=f"{self.url}/v1/",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            verify=_certificates(verify),
            timeout=httpx.Timeout(answer_s, connect=min(CONNECT_S, answer_s)),
            transport=transport,
            trust_env=not is_here(host),  # no proxy stands between a machine and itself
        )

    def close(self) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, str | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> httpx.Response:
        """A successful answer. ``repeatable``: sending it twice does no harm, so a lost answer is requested again.

        Raises ApiError for a refusal, Unreachable where nothing answers.
        """

        def send() -> httpx.Response:
            response = self._client.request(method, path, json=body, params=params, headers=headers)
            if repeatable and response.status_code in TRY_AGAIN:
                raise Busy(response)
            return response

        response = self._patiently(send, httpx.TransportError if repeatable else NEVER_SENT, self._patience_s)
        if response.is_success:
            return response
        raise refusal(response)

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float | None = None,
        patience_s: float | None = None,
    ) -> Iterator[httpx.Response]:
        """A successful answer whose body is read as it comes; ``read_s`` is the longest silence in it.

        Only opening it is retried; a later break raises httpx.TransportError.
        """
        timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S, read=read_s)
        request = self._client.build_request("GET", path, params=params, headers=headers, timeout=timeout)

        def send() -> httpx.Response:
            response = self._client.send(request, stream=True)
            if not response.is_success:
                response.read()
            if response.status_code in TRY_AGAIN:
                raise Busy(response)
            return response

        response = self._patiently(send, httpx.TransportError, patience_s or self._patience_s)
        try:
            if not response.is_success:
                raise refusal(response)
            yield response
        finally:
            response.close()

    def _patiently(
        self,
        send: Callable[[], httpx.Response],
        on: type[httpx.TransportError] | tuple[type[httpx.TransportError], ...],
        patience_s: float,
    ) -> httpx.Response:
        """An answer of any status; the request is repeated after errors ``on`` and while the manager is busy. Raises
        Unreachable after ``patience_s`` without an answer."""

        def again(error: Exception) -> bool | float:
            if isinstance(error, Busy):
                return True if error.pause_s is None else error.pause_s
            return isinstance(error, on) and BAD_CERTIFICATE not in str(error)

        retrying = stamina.RetryingCaller(
            attempts=None, timeout=patience_s, wait_initial=0.1, wait_max=LONGEST_WAIT_S, wait_jitter=0.1
        )
        try:
            return retrying(again, send)
        except Busy as busy:
            return busy.response
        except httpx.TransportError as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: httpx.TransportError) -> Unreachable:
        cause = str(error) or type(error).__name__
        if BAD_CERTIFICATE in cause:
            remedy = "log in again, which finds the authority that certifies it, or name it: `ces login URL --ca FILE`"
        elif isinstance(error, httpx.RemoteProtocolError) and self.url.startswith("http://"):
            remedy = f"it may speak TLS: `ces login https{self.url.removeprefix('http')}`"
        elif isinstance(error, httpx.TimeoutException):
            remedy = "check that the manager is up and that nothing on the way holds its answers back"
        else:
            remedy = "check that the manager runs there (`ces up` starts a local one), or go elsewhere: `ces login URL`"
        return Unreachable(self.url, cause, remedy)


def refusal(response: httpx.Response) -> CesError:
    """The error in an answer: its problem document, or one made from its status."""
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        problem = Problem(
            title=response.reason_phrase or "Refused", status=response.status_code, detail=response.text[:200].strip()
        )
    if response.status_code == 401 and not problem.errors:
        remedy = "log in with a valid token: `ces login URL`, or set CES_TOKEN"
        problem = problem.model_copy(update={"errors": [{"field": "token", "remedy": remedy}]})
    return ApiError(problem)


def host_of(url: str) -> str:
    """The host of a manager's URL. Raises BadInput for any other text."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:  # an odd port raises
            return parts.hostname
        problem = "not http://HOST:PORT or https://HOST:PORT"
    except ValueError as error:
        problem = str(error)
    raise bad_field(f"{url!r} is no URL of a manager", "url", problem, "write it like https://edge-master:8080")


def _certificates(verify: bool | str) -> bool | ssl.SSLContext:
    if isinstance(verify, bool):
        return verify
    try:
        return trusting(Path(verify).read_text())
    except (OSError, ValueError) as error:
        raise bad_field(
            f"The CA file {verify} cannot be used", "ca", str(error), "give a file of PEM certificates"
        ) from error
