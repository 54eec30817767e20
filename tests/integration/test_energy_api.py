"""Energy and availability over the API, as the SDK reads them."""

from __future__ import annotations

import asyncio

from rest_api import TOKEN, Api, join

from ces_client.client import Client
from ces_common import subjects
from ces_common.messages.energy import Energy, EnergyReport, JobEnergy, NodeEnergy
from ces_common.messages.reports import Heartbeat
from ces_manager.energy.notes import note_energy
from ces_manager.energy_book import EnergyBook

REPORT = EnergyReport(source="modelled", meter="model", total=50_000_000, watts=25)


async def joined(api: Api, *nodes: str) -> None:
    for node in nodes:
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, node)).status_code == 200


async def test_what_a_node_tells_with_its_heartbeats_can_be_read(api_on_either: Api) -> None:
    api, book = api_on_either, EnergyBook()
    await joined(api, "n1", "n2")
    job = (await api.submit())["id"]
    beat = Heartbeat(node="n1", boot="b", energy=REPORT)
    await api.bus.request(subjects.heartbeat("n1"), beat.encode())
    await api.heard("n2")
    book.heard(beat)
    await note_energy(api.database, book)

    def read() -> tuple[list[NodeEnergy], NodeEnergy, JobEnergy, Energy | None]:
        with Client(str(api.http.base_url), TOKEN) as client:
            nodes = list(client.energy.nodes())
            return nodes, client.energy.node("n1"), client.energy.job(job), client.nodes.get("n1").energy

    nodes, one, of_job, of_view = await asyncio.to_thread(read)
    assert [(each.node, each.energy and each.energy.modelled) for each in nodes] == [("n1", 50), ("n2", None)]
    assert (one.meter, one.system.modelled, one.jobs) == ("model", 50, [])
    assert of_view is not None
    assert (of_view.modelled, of_view.measured) == (50, 0)
    assert (of_job.energy, of_job.tasks, of_job.unknown) == (Energy(), [], 0)
    await api.refused("GET", "/v1/nodes/nobody/energy", 404)
    await api.refused("GET", "/v1/jobs/nobody/energy", 404)
    await api.refused("GET", "/v1/energy?cursor=a%20b", 422)


async def test_nothing_is_known_of_availability_at_first(api: Api) -> None:
    await joined(api, "n1", "n2")
    topology = {"links": [{"src": "n1", "dst": "n2", "bandwidth": "10Mbit"}]}
    assert (await api.http.put("/v1/topology", json=topology)).status_code == 200
    assert (await api.http.get("/v1/nodes/n1")).json()["availability"] is None
    assert (await api.http.get("/v1/links/n1/n2")).json()["availability"] is None
