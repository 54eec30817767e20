"""Sessions of the dashboard, as an operator sees them."""

from __future__ import annotations

from collections.abc import Iterator

from ces_client.resource import Resource, path_of
from ces_common.messages.identities import SessionView


class Sessions(Resource):
    def list(self) -> Iterator[SessionView]:
        """Those that go on, the newest first."""
        return self._items(SessionView, "sessions")

    def end(self, session: str) -> None:
        """Have it refused from now on. Raises ApiError where it has ended already."""
        self._http.request("DELETE", path_of("sessions", session), repeatable=False)
