"""Connections to a manager whose authority the token names."""

from __future__ import annotations

import httpx

from ces_client.errors import Unreachable
from ces_common.tls.pins import Untrusted, authority_at, trusting


class PinnedTransport(httpx.BaseTransport):
    """Asks the server for its authority at the first request, and checks the server by it if it is the one with that
    fingerprint. Before that, nothing is sent that it could make use of."""

    def __init__(self, url: str, fingerprint: str) -> None:
        self._url, self._fingerprint = url, fingerprint
        self._checked: httpx.HTTPTransport | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.ConnectError where nothing answers, Unreachable where another authority is named."""
        if self._checked is None:
            try:
                authority = authority_at(self._url, self._fingerprint)
            except Untrusted as error:
                remedy = "ask who runs it for a token of this cluster, or name its authority: `ces login URL --ca FILE`"
                raise Unreachable(self._url, str(error), remedy) from error
            except OSError as error:
                raise httpx.ConnectError(str(error), request=request) from error
            self._checked = httpx.HTTPTransport(verify=trusting(authority))
        return self._checked.handle_request(request)

    def close(self) -> None:
        if self._checked is not None:
            self._checked.close()
