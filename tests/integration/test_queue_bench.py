"""Many more jobs than there is room for, on simulated agents: they all come to their end, and an audit of the whole
event log finds nothing. How long that takes is not for tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_experiments.common.command import carry_out
from ces_experiments.control_plane.queue.load import QueueLoad
from ces_experiments.control_plane.queue.report import QUEUE, tables
from ces_experiments.control_plane.queue.run import Question
from ces_experiments.control_plane.simulated_cluster import Alike

JOBS = 60


@pytest.mark.timeout(600)
def test_a_crowded_queue_is_served_and_its_log_is_clean(tmp_path: Path) -> None:
    carry_out("queue", QUEUE, Question(QueueLoad(nodes=8, jobs=JOBS, run_s=1)), tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["states"] == {"succeeded": JOBS}
    audit = results["audit"]
    assert audit["findings"] == []
    assert audit["unjudged"] == []
    assert (audit["first"], audit["held"]) == (1, 0)
    assert audit["plans"] == JOBS + results["placed_again"]
    assert results["longest_queue"] > JOBS / 4
    assert max(peak["share"] for peak in audit["peaks"] if peak["what"] == "cpu") > 0.9, "there was too little room"
    assert results["waits"]["all"]["n"] == JOBS
    assert sum(found["n"] for who, found in results["waits"].items() if who.startswith("tenant ")) == JOBS
    assert len(tables(results)) == 3


@pytest.mark.timeout(600)
def test_it_comes_to_its_end_while_managers_schedulers_and_controllers_are_killed(tmp_path: Path) -> None:
    urgent = tmp_path / "queue.yaml"
    urgent.write_text("preemption: 30")
    load = QueueLoad(nodes=8, jobs=JOBS, run_s=2, rate=3)
    carry_out("queue", QUEUE, Question(load, None, urgent, Alike(managers=2, schedulers=2), kills=2.5), tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["states"] == {"succeeded": JOBS}
    assert (results["audit"]["findings"], results["answers_lost"]) == ([], [])
    assert results["victims"]["sets_at_one_time"] <= 1
    assert sum(results["kills"].values()) > 3
    assert results["proposals"]["plan"] >= JOBS
    assert results["cpu_s"] == {}
