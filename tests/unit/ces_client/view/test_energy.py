"""Energy in words and tables: always with how it is known."""

from __future__ import annotations

import pytest
from client_views import lines, wide

from ces_client.view.energy import (
    energy_text,
    job_parts,
    joules_text,
    node_parts,
    nodes_parts,
    nodes_table,
    source_text,
)
from ces_common.messages.energy import Energy, JobEnergy, JobOnNode, NodeEnergy, TaskEnergy

NODE = NodeEnergy(
    node="roof1",
    meter="rapl",
    energy=Energy(measured=1000, watts=45.67),
    jobs=[JobOnNode(job="1", name="digits", energy=Energy(measured=250))],
    other_jobs=Energy(measured=100),
    system=Energy(measured=650),
)


@pytest.mark.parametrize(
    ("joules", "text"), [(0, "0 J"), (850, "850 J"), (12_345, "12.3 kJ"), (3.6e6, "3.6 MJ"), (5e10, "50 GJ")]
)
def test_joules(joules: float, text: str) -> None:
    assert joules_text(joules) == text


@pytest.mark.parametrize(
    ("energy", "source", "text"),
    [
        (None, "unknown", "unknown"),
        (Energy(), "–", "none yet"),
        (Energy(measured=500, watts=45), "measured", "500 J measured, 45 W now"),
        (Energy(modelled=500), "modelled", "500 J modelled"),
        (Energy(measured=750, modelled=250), "measured 75%, modelled 25%", "750 J measured, 250 J modelled"),
    ],
)
def test_it_is_always_said_how_it_is_known(energy: Energy | None, source: str, text: str) -> None:
    assert (source_text(energy), energy_text(energy)) == (source, text)


def test_nodes() -> None:
    of_jobs = NODE.model_copy(update={"jobs": [], "other_jobs": Energy(measured=350)})
    head, known, unknown = wide(nodes_table([of_jobs, NodeEnergy(node="roof2")]))
    assert head.split() == ["NODE", "SOURCE", "METER", "NOW", "ENERGY", "JOBS", "SYSTEM"]
    assert known.split() == (["roof1", "measured", "rapl", "45.7", "W", "1", "kJ", "350", "J", "650", "J"])
    assert unknown.split() == ["roof2", "unknown", *["–"] * 5]
    assert "CES_POWER_IDLE and CES_POWER_PEAK" in wide(nodes_parts([of_jobs, NodeEnergy(node="roof2")]))[-1]
    assert wide(nodes_parts([of_jobs])) == wide(nodes_table([of_jobs]))


def test_a_node_and_who_uses_it() -> None:
    head, _, _, *rows = lines(node_parts(NODE))
    assert head == "roof1  1 kJ measured, 45.7 W now"
    assert [row.split() for row in rows] == [
        ["digits", "measured", "250", "J", "25.0%"],
        ["other", "jobs", "measured", "100", "J", "10.0%"],
        ["system", "measured", "650", "J", "65.0%"],
    ]
    assert "nothing measures it" in lines(node_parts(NodeEnergy(node="roof2")))[1]


def test_a_job_task_by_task_and_what_of_it_is_unknown() -> None:
    tasks = [
        TaskEnergy(task="w-0", node="n0", attempt=2, energy=Energy(measured=5)),
        TaskEnergy(task="w-1", node="n1", attempt=2),
    ]
    view = JobEnergy(job="1", name="digits", energy=Energy(measured=5), tasks=tasks, unknown=1)
    head, _, _, *rows = lines(job_parts(view))
    assert head == "digits  5 J measured"
    assert rows[0].split() == ["w-0", "n0", "2", "measured", "5", "J"]
    assert rows[1].split() == ["w-1", "n1", "2", "unknown", "–"]
    assert rows[2] == "1 of them not counted: unknown on their nodes"
    assert lines(job_parts(JobEnergy(job="1", name="digits", energy=Energy())))[1] == "none of its tasks has run yet"
