"""Energy of nodes and jobs."""

from __future__ import annotations

from collections.abc import Iterator

from ces_client.resource import Resource
from ces_client.resource import path_of as _path
from ces_common.messages.energy import JobEnergy, NodeEnergy


class Energies(Resource):
    """What was used, ``measured`` or ``modelled``, in joules; as of the last half minute."""

    def nodes(self) -> Iterator[NodeEnergy]:
        """Of all nodes; no job is named."""
        return self._items(NodeEnergy, "energy")

    def node(self, node: str) -> NodeEnergy:
        """With the jobs that have something there."""
        return self._read(NodeEnergy, self._http.request("GET", _path("nodes", node, "energy")))

    def job(self, job: str) -> JobEnergy:
        """Task by task, of a job by its id."""
        return self._read(JobEnergy, self._http.request("GET", _path("jobs", job, "energy")))
