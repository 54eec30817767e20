"""Secrets of tenants, which are stored and never shown."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from ces_client.resource import Resource
from ces_client.resource import path_of as _path
from ces_common.messages.secrets import SecretView


class Secrets(Resource):
    """Secrets by name. ``tenant``: left out, that of the token."""

    def put(self, name: str, value: bytes, *, tenant: str | None = None) -> SecretView:
        """Store it, in place of another of its name; nobody is told its value again."""
        body = {"value": base64.b64encode(value).decode()}
        return self._read(SecretView, self._http.request("PUT", _path("secrets", name), body=body, params=_of(tenant)))

    def list(self) -> Iterator[SecretView]:
        return self._items(SecretView, "secrets")

    def remove(self, name: str, *, tenant: str | None = None) -> SecretView:
        # A repetition would find no such secret, whatever became of the first.
        answer = self._http.request("DELETE", _path("secrets", name), params=_of(tenant), repeatable=False)
        return self._read(SecretView, answer)


def _of(tenant: str | None) -> dict[str, str]:
    return {} if tenant is None else {"tenant": tenant}
