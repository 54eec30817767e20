"""The versions of the scheduler's policy, where it evolves."""

from __future__ import annotations

from ces_client.resource import Resource
from ces_common.messages.policies import PolicyAnswer


class Policies(Resource):
    def get(self) -> PolicyAnswer:
        """Which version decides, what is known of the others, and what has happened to them."""
        return self._read(PolicyAnswer, self._http.request("GET", "policy"))
