"""Devices that have applied to be made nodes."""

from __future__ import annotations

from collections.abc import Iterator

from ces_client.resource import MOST, Resource, path_of
from ces_common.messages.membership import Applicant, RefusedApplicants


class Applicants(Resource):
    def list(self) -> Iterator[Applicant]:
        """What they claim, and from where; nothing of it is proved."""
        return self._items(Applicant, "applicants", {"limit": MOST})

    def refuse(self, name: str) -> RefusedApplicants:
        """Forget all that have applied under this name."""
        # A repetition would find none, whatever became of the first.
        return self._read(
            RefusedApplicants, self._http.request("DELETE", path_of("applicants", name), repeatable=False)
        )
