"""``ces energy``."""

from __future__ import annotations

import json

from ces_command import ces

from ces_common.messages.energy import Energy, JobEnergy, NodeEnergy, TaskEnergy

NODE = NodeEnergy(node="n0", meter="model", energy=Energy(modelled=500, watts=5), system=Energy(modelled=500))


def job(samples, name="digits"):
    task = TaskEnergy(task="w-0", node="n0", attempt=1, energy=Energy(modelled=20))
    return JobEnergy(job=samples.id, name=name, energy=Energy(modelled=20), tasks=[task])


def test_all_nodes(connected):
    connected.on("GET", "energy", [])
    assert ces("energy").stdout == "no nodes\n"
    connected.on("GET", "energy", [NODE, NodeEnergy(node="n1")])
    shown = ces("energy").stdout
    assert "modelled" in shown
    assert "unknown" in shown
    assert [each["node"] for each in json.loads(ces("energy", "-o", "json").stdout)] == ["n0", "n1"]


def test_a_node_or_a_job_by_its_name_or_id(connected, samples):
    connected.on("GET", "energy", [NODE])
    connected.on("GET", "jobs", [samples.job()])
    connected.on("GET", "nodes/n0/energy", NODE)
    connected.on("GET", f"jobs/{samples.id}/energy", job(samples))
    connected.on("GET", "jobs", [])
    assert ces("energy", "n0").stdout.startswith("n0  500 J modelled, 5 W now")
    connected.on("GET", "jobs", [samples.job()])
    assert ces("energy", "digits").stdout.startswith("digits  20 J modelled")
    assert json.loads(ces("energy", samples.id, "-o", "json").stdout)["energy"]["modelled"] == 20


def test_a_name_that_is_both_is_asked_about(connected, samples):
    both = samples.job().model_copy(update={"name": "n0"})
    connected.on("GET", "energy", [NODE])
    connected.on("GET", "jobs", [both])
    connected.on("GET", "nodes/n0/energy", NODE)
    connected.on("GET", f"jobs/{samples.id}/energy", job(samples, "n0"))
    assert "write job/n0 or node/n0" in ces("energy", "n0", code=2).output
    assert ces("energy", "node/n0").stdout.startswith("n0  500 J modelled")
    assert ces("energy", "job/n0").stdout.startswith("n0  20 J modelled")
