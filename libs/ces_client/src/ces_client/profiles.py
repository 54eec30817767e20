"""What steps of jobs take, here and on other nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ces_client.resource import Resource
from ces_client.resource import path_of as _path
from ces_common.messages.work import JobProfile


class Profiles(Resource):
    def job(self, job: str, nodes: Sequence[str] = ()) -> JobProfile:
        """Of a job by its id, with what is predicted for each of ``nodes``."""
        params = {"node": list(nodes)} if nodes else None
        return self._read(JobProfile, self._http.request("GET", _path("jobs", job, "profile"), params=params))
