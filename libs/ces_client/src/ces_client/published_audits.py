"""Audits that were published to a manager."""

from __future__ import annotations

from collections.abc import Iterator

from ces_client.resource import Resource, path_of
from ces_common.messages.audits import AuditReport, AuditSummary, AuditView


class Audits(Resource):
    def publish(self, report: AuditReport) -> AuditView:
        """Have the manager keep it. A lost answer is not asked for again: it might be kept twice."""
        body = report.model_dump(mode="json")
        return self._read(AuditView, self._http.request("POST", "audits", body=body, repeatable=False))

    def list(self) -> Iterator[AuditSummary]:
        """The newest first, without their findings."""
        return self._items(AuditSummary, "audits")

    def latest(self) -> AuditView:
        """ApiError 404 where there is none."""
        return self._read(AuditView, self._http.request("GET", path_of("audits", "latest")))

    def get(self, audit: str) -> AuditView:
        return self._read(AuditView, self._http.request("GET", path_of("audits", audit)))
