"""What the network benchmark reads off its counts, and the documents that it asks the agents to apply."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ces_common.shares import reservable
from ces_experiments.network.agents import asked
from ces_experiments.network.rates import each, errors, in_force_after, worst
from ces_experiments.network.report import tables
from ces_experiments.network.row import Row, Worker, filled
from ces_testbed.errors import TestbedError

MBIT = 1_000_000


def ramp(*parts: tuple[float, float]) -> list[tuple[float, int]]:
    """Samples every 10 ms of a flow that has each rate (bit/s) for so many seconds."""
    samples, moment, count = [(0.0, 0)], 0.0, 0.0
    for rate, seconds in parts:
        for _ in range(round(seconds * 100)):
            moment, count = moment + 0.01, count + rate / 800
            samples.append((round(moment, 2), round(count)))
    return samples


def test_rates_and_errors() -> None:
    assert each([(0.0, 0), (1.0, 1000), (3.0, 2000)]) == [8000, 4000]
    assert errors([101, 97], 100) == pytest.approx([1, -3])
    assert worst([1, -3, 2]) == -3


def test_a_change_is_in_force_when_the_rate_stays() -> None:
    samples = ramp((10 * MBIT, 0.5), (30 * MBIT, 0.5), (10 * MBIT, 0.1), (30 * MBIT, 0.5))
    found = in_force_after(samples, 0.2, 30 * MBIT)
    assert found == pytest.approx(0.88, abs=0.03)  # what came before the dip does not count
    assert in_force_after(samples, 0.2, 20 * MBIT) is None
    steady = in_force_after(ramp((30 * MBIT, 1.0)), 0.1, 30 * MBIT)
    assert steady == pytest.approx(0.0, abs=0.01)


def test_the_links_are_full_and_no_fuller() -> None:
    rate = 10 * MBIT
    row = Row("unmade-", filled(rate, 2))
    row.workers = [Worker(f"{job}{host}", host, job, f"10.{host}.0.{place}", "") for host in (1, 3)
                   for place, job in enumerate("ab", 2)]  # fmt: skip
    near_a, near_b, far_a, far_b = row.workers
    for number, (src, dst) in enumerate(((near_a, far_a), (far_a, near_a), (near_b, far_b), (far_b, near_b)), 1):
        row.reserve(number, src, dst, rate)
    for host, peers in ((1, ["n2"]), (2, ["n1", "n3"]), (3, ["n2"])):
        desired = row.desired(host, generation=1)
        assert [link.peer for link in desired.links] == peers
        for link in desired.links:
            here = [each for each in desired.classes if each.via == link.peer]
            data = sum(each.rate for each in here if each.kind == "data")
            assert data == 2 * rate
            assert reservable(link.bandwidth) - data < 10  # bit/s
            assert sum(each.rate for each in here) + link.best_effort <= link.bandwidth
    assert len(row.desired(2, 1).policies) == 4
    assert row.desired(1, 1).policies == []


@pytest.mark.parametrize(
    ("program", "seconds", "words"),
    [
        ("input(); input()", 0.5, "n1 did not answer within 0.5 s"),
        ("pass", 60, "n1 ended: its words are above"),
    ],
)
def test_a_data_plane_that_gives_no_answer_is_not_waited_for(program: str, seconds: float, words: str) -> None:
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with pytest.raises(TestbedError, match=words):
            asked(process, b"{}\n", "n1", seconds)
        process.kill()


def test_connections_that_were_not_opened_are_told_apart_by_when() -> None:
    results = json.loads((Path(__file__).parents[4] / "docs/benchmarks/network/results.json").read_text())
    for found in results["rates"].values():
        found |= {"not_opened_idle": 2, "not_opened": 1}
    rows = next(grid for grid in tables(results) if "new connection" in grid.title).rows
    assert [(row[0], row[-1]) for row in rows[:2]] == [("1 Mbit/s, idle", "2"), ("1 Mbit/s, under flood", "1")]
