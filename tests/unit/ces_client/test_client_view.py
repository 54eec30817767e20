"""What people see: the tables' content, at 100 columns."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ces_client import load_job
from ces_client.view import (
    committed_plan,
    job_flows,
    job_live,
    job_news,
    job_table,
    link_table,
    node_detail,
    node_table,
    plan_answer,
    probe_table,
    queue_table,
    task_progress,
)
from ces_client.view.flows import BARS, sparkline
from ces_client.view.words import path_text, rate_range, span
from ces_common.messages.api import (
    FlowHop,
    FlowRates,
    FlowSample,
    FlowShortfall,
    JobFlowsView,
    LinkProbeView,
    LinkView,
    NodeView,
    PlanForecast,
    PlanView,
    QueueEntry,
)
from ces_common.messages.events import FlowPlan, PolicyAdvice, Reason

NOW = datetime(2026, 11, 22, 14, 0, tzinfo=UTC)
NARROW = Reason(
    code="bandwidth-per-flow", text="flow a -> b needs 10 Mbit/s; the widest path has 4 [Mbit/s]", forever=True
)


def lines(renderable: object, width: int = 100) -> list[str]:
    screen = Console(width=width, record=True, file=None, quiet=False, force_terminal=False)
    with screen.capture() as captured:
        screen.print(renderable)
    return [line.rstrip() for line in captured.get().splitlines()]


def wide(renderable: object) -> list[str]:
    return lines(renderable, 200)


def node(**more) -> NodeView:
    fields = {"name": "n0", "state": "ready", "cordoned": True, "cpu": 4000, "memory": 8 * 2**30, "gpu": 1}
    fields |= {"cpu_allocated": 1500, "memory_allocated": 2**29, "gpu_allocated": 0, "arch": "arm64"}
    fields |= {"runtime": "process", "network": "none", "host_address": "10.0.0.1", "subnet": "10.1.0.0/24"}
    return NodeView(**(fields | more))


def plan(samples, considered, **more) -> PlanView:
    fields = {"plan": "p", "job": "j", "attempt": 1, "solver": "search", "version": 4} | more
    return PlanView(**fields, committed_at=samples.submitted, considered=considered)


def test_a_running_job_shows_workers_and_what_flows_get(samples):
    now = samples.submitted + timedelta(seconds=65)
    shown = lines(job_live(samples.job("running", round_=10, attempt=2, restarts=1), now))
    assert shown[0] == f"digits {samples.id}  running  1m00s  attempt 2  1 restart"
    assert shown[3].split() == ["worker-0", "n0", "running", "━━━━━━━━", "10/40", "0.2500", "95.1%"]
    assert shown[6] == "TASK      NODE  FLOW        PATH                 ASKED      GIVEN     MEASURED"
    assert shown[7] == "worker-0  n0    → worker-1  n0 › s0 › n1  10–50 Mbit/s  40 Mbit/s  38.5 Mbit/s"
    assert len(shown) == 9
    assert max(map(len, shown)) <= 100


def carrying(samples, *rates, age_s=0):
    """A view of one flow over two links, of which the second carries half."""
    at = samples.submitted

    def hop(src, dst, share):
        times = [at - timedelta(seconds=age_s + 2 * i) for i in reversed(range(len(rates)))]
        said = [FlowSample(at=time, rate=rate * share) for time, rate in zip(times, rates, strict=True)]
        return FlowHop(src=src, dst=dst, samples=said)

    flow = FlowRates(
        **samples.job("running").flows[0].model_dump(),
        hops=[hop("n0", "s0", 1), hop("s0", "n1", 0.5)],
        shortfall=FlowShortfall(src="n0", dst="s0", rate=1e7, text="has more to send, and so on"),
    )
    return JobFlowsView(id=samples.id, name="digits", state="running", at=at, flows=[flow])


def test_flows_show_what_they_carry_over_time_and_where_it_is_lost(samples):
    view = carrying(samples, 0.0, 20e6, 40e6)
    (row,) = [line for line in wide(job_flows(view, hops=False)) if line.startswith("worker-0")]
    assert row.split("  ")[-3:] == ["40 Mbit/s", "20 Mbit/s", "▁▅█"]
    assert "n0 › s0 › n1" in row
    shown = wide(job_flows(view, hops=True))
    assert [line.split()[-5:] for line in shown[4:6]] == [
        ["40", "Mbit/s", "20", "Mbit/s", "▁▅█"],
        ["20", "Mbit/s", "10", "Mbit/s", "▁▃▅"],
    ]
    assert shown[-1] == "warning: worker-0 → worker-1 has more to send, and so on"


def test_what_a_flow_carried_a_while_ago_is_not_now(samples):
    (row,) = [line for line in wide(job_flows(carrying(samples, 4e7, age_s=30), hops=False)) if "worker-0" in line[:9]]
    assert row.split("  ")[-3:] == ["–", "40 Mbit/s", "█"]


@given(st.lists(st.floats(0, 1e12)), st.floats(0, 1e12))
def test_a_sparkline_has_a_bar_for_each_rate_and_higher_ones_for_higher_rates(rates, top):
    bars = [BARS.index(bar) for bar in sparkline(sorted(rates), top)]
    assert len(bars) == len(rates)
    assert bars == sorted(bars)


def test_a_job_that_waits_says_why(samples):
    shown = lines(job_live(samples.job("queued", waiting=NARROW), samples.submitted + timedelta(minutes=2)))
    assert shown[0].endswith("queued  2m00s")
    assert " ".join(shown[1:3]).startswith(
        "waits: flow a -> b needs 10 Mbit/s; the widest path has 4 [Mbit/s]; no job's"
    )
    assert shown[3] == "2 tasks, 2 flows, not placed yet"


def test_what_is_not_enforced_is_said(samples):
    view = samples.job("running")
    view = view.model_copy(update={"flows": [flow.model_copy(update={"enforced": False}) for flow in view.flows]})
    shown = lines(job_live(view, samples.submitted))
    assert "40 Mbit/s*" in shown[7]
    assert shown[-1].startswith("* planned, but not enforced")


def test_a_failed_job_shows_exit_codes_and_reason(samples):
    shown = lines(job_live(samples.job("failed", reason="worker-1 ended with 1 [oom]"), samples.submitted))
    assert shown[0].endswith("failed  1m05s")
    assert shown[1] == "worker-1 ended with 1 [oom]"
    assert "failed (exit 1)" in shown[4]


def test_flows_within_a_node_use_no_link(samples):
    view = samples.job("running")
    flows = [view.flows[0].model_copy(update={"path": ["n0"]})]
    shown = lines(job_live(view.model_copy(update={"flows": flows}), samples.submitted))
    assert "within n0" in shown[7]
    assert shown[7].endswith("no link")
    assert shown[8].split() == ["worker-1", "n1", "–", "–", "–", "–", "–"]


def test_data_of_a_node_has_a_row_of_its_own(samples):
    view = samples.job("running")
    data = view.flows[0].model_copy(update={"src": "@n2", "path": ["n2", "s0", "n1"]})
    shown = lines(job_live(view.model_copy(update={"flows": [*view.flows, data]}), samples.submitted))
    assert shown[9].split()[:4] == ["(data)", "n2", "→", "worker-1"]
    assert "n2 › s0 › n1" in shown[9]
    detail = lines(node_detail(node(datasets=["mnist", "words"]), [], samples.submitted))
    assert ["data", "mnist,", "words"] in [line.split() for line in detail]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"progress": {"round": 3, "rounds": 40, "loss": 1, "accuracy": 0.5}}, (3, 40, 1.0, 0.5)),
        ({"round": 3, "rounds": 40}, (3, 40, None, None)),
        ({"result": {"rounds": 12, "accuracy": 0.97}}, (12, 12, None, 0.97)),
        ({"rounds": 12, "loss": 0.1, "accuracy": 0.97}, (12, 12, 0.1, 0.97)),
        ({"progress": "half"}, (None, None, None, None)),
        ({"round": "x", "rounds": True}, (None, None, None, None)),
        (None, (None, None, None, None)),
    ],
)
def test_progress_is_read_as_far_as_it_says_something(line, expected):
    read = task_progress(line)
    assert (read.round, read.rounds, read.loss, read.accuracy) == expected


def test_news_tell_what_changed(samples):
    queued, running = samples.job("queued", waiting=NARROW), samples.job("running")
    assert job_news(None, queued)[0] == "digits queued"
    assert job_news(None, queued)[1].startswith("digits waits: flow a -> b")
    assert job_news(queued, queued) == []
    assert job_news(queued, running) == ["digits running (worker-0 on n0, worker-1 on n1)"]
    assert job_news(running, samples.job("failed", reason="gone", restarts=1)) == [
        "digits failed: gone",
        "digits restart 1",
        "worker-0 on n0 failed with exit code 1",
        "worker-1 on n1 failed with exit code 1",
    ]


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
    expected = "n0 › s0 up 1 Gbit/s 250 Mbit/s (25%) 12.3 Mbit/s 4 1.23 ms veth –"
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


def test_a_dry_run_that_finds_a_place(job_file):
    answer = PlanForecast(
        feasible=True,
        version=7,
        solver="greedy",
        assignments={"worker-0": "n0", "worker-1": "n1"},
        flows=[FlowPlan(src="worker-0", dst="worker-1", bandwidth=50_000_000, path=["n0", "n1"])],
        metrics={"composite": 0.97123, "load_imbalance": 0.05},
        bound=0.98765,
        refused={"worker-0": {"n2": "cordoned"}, "worker-1": {"n2": "cordoned"}},
    )
    shown = lines(plan_answer(load_job(job_file), answer, NOW))
    assert shown[0] == "digits has a place  composite 0.9712 (at most 0.9877)  load imbalance 0.05"
    assert shown[3].split() == ["worker-0", "n0", "→", "worker-1", "n0", "›", "n1", "10–50", "Mbit/s", "50", "Mbit/s"]
    assert shown[4].split() == ["worker-1", "n1", "→", "worker-0", "–", "10–50", "Mbit/s", "–"]
    assert shown[7].split() == ["worker-0,", "worker-1", "n2", "cordoned"]


def test_a_dry_run_that_finds_none(job_file):
    refused = {"worker-0": {"n0": "cordoned", "n1": "needs 500m [x]", "n2": "needs 500m [x]"}}
    answer = PlanForecast(feasible=False, version=7, solver="greedy", reason=NARROW, refused=refused)
    shown = lines(plan_answer(load_job(job_file), answer, NOW))
    assert shown[0] == "no place for digits"
    assert shown[1].startswith("flow a -> b needs 10 Mbit/s")
    assert [line.split() for line in shown[4:7]] == [
        ["TASKS", "NODES", "WHY", "NOT"],
        ["worker-0", "n0", "cordoned"],
        ["n1,", "n2", "needs", "500m", "[x]"],
    ]


@pytest.mark.parametrize("sparing", [True, False])
def test_a_committed_plan_says_where_room_was_left_for_later_jobs(samples, sparing):
    shown = "\n".join(lines(committed_plan(plan(samples, {"sparing": sparing, "bound": 0.95}), "5s")))
    assert ("leaves room for later jobs" in shown) is sparing
    assert "considered" not in shown


def test_a_committed_plan_shows_what_was_considered(samples):
    considered = {"candidates": 3, "refused": {"worker-0": {"n1": "cpu [full]"}}, "score": 0.123456, "none": []}
    considered |= {"decision_ms": 5.25, "bound": 0.95}
    shown = "\n".join(lines(committed_plan(plan(samples, considered, metrics={"composite": 0.93}), "5s")))
    assert "search, attempt 1, snapshot 4, committed 5s ago, decided in 5.2 ms" in shown
    assert "composite 0.93 (at most 0.95)" in shown
    assert re.search(r"worker-0 +n1 +cpu \[full\]", shown)
    assert "score: 0.1235" in shown
    assert "bound" not in shown


def test_a_policys_part_in_a_plan_is_shown(samples, job_file):
    policy = {"version": "general-1234", "probabilities": {"worker-0": 0.98765, "worker-1": 0.5}}
    placed = {"worker-0": "n1", "worker-1": "n2"}
    followed = plan(samples, {"policy": policy, "fallback": None}, solver="ces-ppo", assignments=placed)
    answer = PlanForecast(
        feasible=True, version=7, solver="ces-ppo", assignments=placed, policy=PolicyAdvice.model_validate(policy)
    )
    for shown in (lines(committed_plan(followed, "5s")), lines(plan_answer(load_job(job_file), answer, NOW))):
        start = shown.index("policy general-1234")
        rows = [["TASK", "NODE", "PROBABILITY"], ["worker-0", "n1", "0.9877"], ["worker-1", "n2", "0.5000"]]
        assert [line.split() for line in shown[start + 1 : start + 4]] == rows
        assert "fallback" not in "\n".join(shown)


def test_that_no_policy_was_followed_is_shown(samples, job_file):
    why = "ces-ppo could not be used: /policy.onnx: No such file or directory"
    unguided = plan(samples, {"policy": None, "fallback": why})
    answer = PlanForecast(feasible=False, version=7, solver="search", reason=NARROW, fallback=why)
    for shown in (lines(committed_plan(unguided, "5s")), lines(plan_answer(load_job(job_file), answer, NOW))):
        assert why in shown


def test_words():
    assert [span(s) for s in (-1, 42, 187, 7500, 356_400)] == ["0s", "42s", "3m07s", "2h05m", "4d03h"]
    assert rate_range(10**7, 5 * 10**7) == "10–50 Mbit/s"
    assert rate_range(500_000, 10**9) == "500 kbit/s – 1 Gbit/s"
    assert rate_range(10**7, 10**7) == "10 Mbit/s"
    assert [path_text([]), path_text(["a"]), path_text(["a", "b"])] == ["–", "within a", "a › b"]
