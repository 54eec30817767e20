"""Connections to a manager whose authority the token names."""

from __future__ import annotations

import threading

import httpx

from ces_client.errors import Unreachable
from ces_common.tls.pins import Untrusted, authority_at, trusting


class PinnedTransport(httpx.BaseTransport):
    """Asks the server for its authority at the first request, and checks the server by it if it is the one with that
    fingerprint. Before that, nothing is sent that it could make use of."""

    def __init__(self, url: str, fingerprint: str) -> None:
        self._url, self._fingerprint = url, fingerprint
        self._checked: httpx.HTTPTransport | None = None
        self._one_at_a_time = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.ConnectError where nothing answers, Unreachable where another authority is named."""
        with self._one_at_a_time:
            checked = self._checked = self._checked or self._found(request)
        return checked.handle_request(request)

    def _found(self, request: httpx.Request) -> httpx.HTTPTransport:
        try:
            authority = authority_at(self._url, self._fingerprint)
        except Untrusted as error:
            remedy = "ask who runs it for a token of this cluster, or name its authority: `ces login URL --ca FILE`"
            raise Unreachable(self._url, str(error), remedy) from error
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        return httpx.HTTPTransport(verify=trusting(authority))

    def close(self) -> None:
        if self._checked is not None:
            self._checked.close()
