"""Lists as tables."""

from __future__ import annotations

from datetime import timedelta

import pytest
from client_views import BERT, NARROW, NOW, SOON, entry, lines, node, queue_status, wide

from ces_client.view.lists import job_table, link_table, node_detail, node_table, probe_table, queue_table
from ces_common.messages.api import LinkProbeView, LinkView, QueueEntry
from ces_common.messages.availability import Availability
from ces_common.messages.energy import Energy


def test_the_queues_table():
    first = entry(reason=NARROW, queue_status=queue_status(holders=[BERT], start_at=SOON))
    later = entry(position=4, queue_status=queue_status(start_at=NOW))
    overdue = entry(position=1, queue_status=queue_status(overdue=True, reserved=True, start_at=SOON))
    head, *rows = wide(queue_table([first, later, overdue, entry()], NOW))
    assert head.split() == ["#", "JOB", "TENANT", "PRIO", "WAITS", "SCORE", "WHY", "START", "HELD", "BY"]
    assert rows[0].split()[:6] == ["3", "digits", "vision", "80", "5m00s", "-1.38"]
    assert NARROW.text in rows[0]
    assert [part.strip() for part in rows[0].split("  ") if part][-2:] == ["about 14:02", "bert"]
    assert "not its turn yet: fit -2.12" in rows[1]
    assert "overdue" in rows[2]
    assert "no later than 14:02" in rows[2]
    assert "not tried yet" in rows[3]


def test_lists(samples):
    now = samples.submitted + timedelta(hours=3, minutes=4)
    jobs = lines(job_table([samples.job(nodes=["n0", "n1"]), samples.job("queued", reason="[full]")], now))
    assert jobs[0].split() == ["NAME", "ID", "STATE", "PRIO", "TASKS", "AGE", "NODES"]
    assert jobs[1].split() == ["digits", samples.id, "running", "50", "2", "3h04m", "n0,", "n1"]
    assert jobs[2].endswith("[full]")
    assert lines(node_table([node()], now))[1].split() == (
        [
            "n0",
            "ready",
            "cordoned",
            "1.5/4",
            "cores",
            "512",
            "MiB",
            "/",
            "8",
            "GiB",
            "0/1",
            "arm64",
            "process",
            "none",
            "0",
            "–",
        ]
    )
    link = LinkView(src="n0", dst="s0", bandwidth=10**9, reserved=25 * 10**7, used=12.3e6, drops=3, kind="veth")
    link = link.model_copy(update={"errors": 1, "round_trip_s": 0.00123})
    expected = "n0 › s0 up 1 Gbit/s 250 Mbit/s (25%) 12.3 Mbit/s 3 1 1.23 ms veth –"
    assert lines(link_table([link]))[1].split() == expected.split()
    down = link.model_copy(update={"state": "down", "reason": "no carrier"})
    assert lines(link_table([down]))[1].startswith("n0 › s0  down (no")
    slow = link.model_copy(update={"measured": 8 * 10**8})
    assert "  800 Mbit/s of 1 Gbit/s  " in lines(link_table([slow.model_copy(update={"reserved": 0})]))[1]
    probe = LinkProbeView(src="n0", dst="s0", bandwidth=10**9, sent=9e8, received=9e8, round_trip_s=0.001)
    assert lines(probe_table([probe]))[1].endswith("at least 900 Mbit/s        1 ms")
    entry = QueueEntry(position=1, id=samples.id, name="digits", priority=50, submitted_at=samples.submitted)
    assert lines(queue_table([entry], now))[1].split("  ")[-5:] == ["not tried yet", "–", "", "", "–"]
    detail = lines(node_detail(node(labels={"site": "roof"}, cpu_used=812.4), [link], now))
    assert detail[0] == "n0  ready cordoned"
    assert "cpu           1.5/4 cores allocated, machine uses 0.81 cores" in detail
    assert "network       none (nothing is enforced)" in detail
    assert "labels        site=roof" in detail
    assert lines(node_detail(node(reclaimed=True), [], now))[0] == "n0  ready cordoned reclaimed"
    contested = lines(node_detail(node(warning="two machines use it"), [], now))
    assert contested[0] == "n0  ready cordoned contested"
    assert "warning       two machines use it" in contested


def test_what_shaping_drops_is_no_error():
    link = LinkView(src="n0", dst="s0", bandwidth=10**9, reserved=0, drops=68, errors=0, kind="veth")
    head, row = wide(link_table([link]))
    assert head.index("DROPPED") < head.index("ERRORS")
    assert "ERROR " not in head
    assert row[head.index("DROPPED") :].split()[:2] == ["68", "0"]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_id_and_no_name_is_broken_over_lines(samples, width):
    name, now = "a-rather-long-name-of-a-job", samples.submitted
    shown = lines(job_table([samples.job(name=name, nodes=[f"node-{i}" for i in range(9)])], now), width)
    assert shown[1].startswith(f"{name}  {samples.id}  running")
    assert not any(line.endswith(" ") for line in shown)
    (_, row, *_) = lines(queue_table([entry(name=name, reason=NARROW)], NOW), width)
    assert name in row
    (_, row) = lines(link_table([LinkView(src=name, dst="switch-0", bandwidth=10**9, reserved=0, kind="veth")]), width)
    assert row.startswith(f"{name} › switch-0  up")
    assert "1 Gbit/s" in row


def test_a_narrow_terminal_has_fewer_columns(samples):
    nodes = [node(name=f"a-node-{i}") for i in range(3)]
    heads = [lines(node_table(nodes, samples.submitted), width)[0].split() for width in (60, 80, 200)]
    assert set(heads[0]) < set(heads[1]) < set(heads[2])
    for width in (60, 80):
        assert max(map(len, lines(node_table(nodes, samples.submitted), width))) <= width
    assert heads[2] == ["NAME", "STATE", "CPU", "MEMORY", "GPU", "ARCH", "RUNTIME", "NETWORK", "TASKS", "HEARD"]


def test_a_nodes_energy_and_availability_are_told_or_said_to_be_unknown():
    unknown = lines(node_detail(node(), [], NOW))
    assert "energy        unknown" in unknown
    assert "availability  nothing learned yet" in unknown
    learned = Availability(least=0.9, mean=0.95, n=60)
    link = LinkView(src="n0", dst="s0", bandwidth=10**9, reserved=0, kind="veth", availability=learned)
    known = lines(node_detail(node(energy=Energy(measured=500, watts=5), availability=learned), [link], NOW))
    assert "energy        500 J measured, 5 W now" in known
    assert "availability  at least 90 % (95 % sure), mean 95 %, n = 60 minutes" in known
    assert known[-1] == "n0 › s0  at least 90 % (95 % sure), mean 95 %, n = 60 minutes"
    assert "availability of links" not in lines(
        node_detail(node(), [link.model_copy(update={"availability": None})], NOW)
    )
