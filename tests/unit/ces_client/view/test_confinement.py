"""What is said of how workers are kept apart."""

from __future__ import annotations

import pytest
from client_views import NOW, node, wide
from confinements import APART, TOGETHER

from ces_client.view.confinement import confined_tasks, confinement_text
from ces_client.view.job import job_facts
from ces_client.view.lists import node_detail
from ces_common.messages.api import TaskView
from ces_common.messages.confinement import Confinement

LOOSE = "process: user shared by all, calls filtered, root writable, disk unbounded, network not confined"
TIGHT = "process: user of its own, calls filtered, root read-only, disk measured, network by tc"


@pytest.mark.parametrize(
    ("runtime", "network", "told", "said"),
    [
        ("process", "tc", APART, TIGHT),
        ("process", "none", TOGETHER, LOOSE),
        (
            "docker",
            "tc",
            APART.model_copy(update={"filter": False, "disk": "limited"}),
            "docker: container of its own, calls not filtered, root read-only, disk limited, network by tc",
        ),
        ("docker", "tc", None, "docker: its agent has not told yet"),
    ],
)
def test_a_line_says_what_holds(runtime: str, network: str, told: Confinement | None, said: str) -> None:
    assert confinement_text(runtime, network, told) == said


def task(name: str, network: str, told: Confinement) -> TaskView:
    return TaskView(name=name, rank=0, cpu=1, memory=1, node="n", runtime="process", network=network, confinement=told)


def test_tasks_of_which_the_same_holds_are_told_together() -> None:
    tight = [task(f"w-{number}", "tc", APART) for number in range(5)]
    assert confined_tasks(tight) == [TIGHT]
    mixed = [*tight, task("v-0", "none", TOGETHER), TaskView(name="u", rank=0, cpu=1, memory=1)]
    assert confined_tasks(mixed) == [f"w-0, w-1, w-2 and 2 more in {TIGHT}", f"v-0 in {LOOSE}"]


def test_nodes_and_jobs_are_described_with_it(samples) -> None:
    of_node = node().model_copy(update={"confinement": TOGETHER})
    assert any(line.split(maxsplit=1) == ["confines", LOOSE] for line in wide(node_detail(of_node, [], NOW)))
    view = samples.job("running")
    view = view.model_copy(update={"placement": [task("worker-0", "tc", APART)]})
    assert any(line.split(maxsplit=1) == ["confined", TIGHT] for line in wide(job_facts(view, NOW)))
