"""A job as people see it, at 100 columns."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ces_command import ces
from client_views import BERT, NARROW, NEVER, NOW, SOON, lines, node, queue_status, wide

from ces_client.view.job import job_facts, job_live, job_news, task_progress
from ces_client.view.lists import node_detail
from ces_client.view.plan import committed_plan
from ces_common.messages.api import JobView, PlanView
from ces_common.messages.events import Reason
from ces_common.messages.reports import Progress
from ces_edge_agent.logs import progress_of


def test_a_waiting_job_is_described_with_its_queue_status(samples):
    told = queue_status(holders=[BERT], start_at=SOON, reason=NARROW)
    view = samples.job("queued", waiting=NARROW, queue_status=told)
    assert wide(job_live(view, NOW))[1] == "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02"


def test_a_suspended_job_says_for_whom_it_makes_room_and_what_it_waits_for(samples):
    why = "makes room for job urgent, whose priority is 90 instead of 10"
    told = queue_status(holders=[BERT], start_at=SOON, reason=NARROW)
    lines = wide(job_live(samples.job("suspended", waiting=NARROW, queue_status=told, reason=why), NOW))
    assert "suspended" in lines[0]
    assert lines[1:3] == [why, "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02"]
    assert wide(job_live(samples.job("suspended", reason=why), NOW))[1] == why


def test_describing_a_waiting_job_tells_its_place_and_score(connected, samples):
    view = samples.job("queued", waiting=NARROW, queue_status=queue_status(holders=[BERT], reason=NARROW))
    connected.on("GET", f"jobs/{samples.id}", view)
    out = ces("describe", "job", samples.id).stdout
    assert "waits for 12 Mbit/s on n3 -> n5, held by job bert" in out
    assert "number 3, score -1.38 (fit -2.12, priority +0.50, waiting +0.25, share +0.00; scarce: bandwidth)" in out
    assert NARROW.text in out


def test_what_the_sentence_says_already_is_not_repeated(samples):
    reason = Reason(code="packing", text="the tasks do not fit on the nodes together")
    view = samples.job("queued", waiting=reason, queue_status=queue_status(reason=reason))
    assert reason.text not in "\n".join(wide(job_facts(view, NOW)))


def test_a_split_job_says_which_tasks_run_where_and_who_is_silent(samples):
    parts = [
        {"region": "north", "tasks": ["w-0", "w-1"], "state": "running"},
        {"region": "south", "tasks": ["w-2"]},
    ]
    view = samples.job("elsewhere", parts=parts, unknown_since=NOW - timedelta(minutes=2))
    lines = wide(job_live(view, NOW))
    assert lines[-3:-1] == ["w-0, w-1 in region north: running", "w-2 in region south: held"]
    assert lines[-1].endswith("one of these regions does not answer")


def test_why_other_regions_took_a_job_not_is_told_with_what_it_waits_for(samples):
    why = {"far": "it accepts no jobs of tenant red", "near": "it has less free than the job asks for"}
    view = samples.job("queued", waiting=NARROW, not_taken=why, remark="this database was restored")
    shown = "\n".join(" ".join(line.split()) for line in wide(job_facts(view, NOW)))
    assert "region far it accepts no jobs of tenant red" in shown
    assert "region near it has less free than the job asks for" in shown
    assert "remark this database was restored" in shown


def test_a_running_job_shows_workers_and_what_flows_get(samples):
    now = samples.submitted + timedelta(seconds=65)
    shown = lines(job_live(samples.job("running", round_=10, attempt=2, restarts=1), now))
    assert shown[0] == f"digits {samples.id}  running  1m00s  attempt 2  1 restart"
    assert shown[3].split() == ["worker-0", "n0", "running", "━━━━━━━━", "10/40", "0.2500", "95.1%"]
    assert shown[6] == "TASK      NODE  FLOW        PATH                 ASKED       RATE     MEASURED"
    assert shown[7] == "worker-0  n0    → worker-1  n0 › s0 › n1  10–50 Mbit/s  40 Mbit/s  38.5 Mbit/s"
    assert len(shown) == 9
    assert max(map(len, shown)) <= 100


def test_a_job_that_waits_says_why(samples):
    shown = lines(job_live(samples.job("queued", waiting=NEVER), samples.submitted + timedelta(minutes=2)))
    assert shown[0].endswith("queued  2m00s")
    assert " ".join(shown[1:3]).startswith(
        "waits: flow a -> b needs 10 Mbit/s; the widest path has 4 [Mbit/s] (plans may reserve 95 % of a link); no job"
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


@pytest.mark.parametrize("value", ["9" * 400, "-" + "9" * 400, "1e400", "-1e400", "NaN", "Infinity", "1e300"])
@pytest.mark.parametrize("key", ["round", "rounds", "loss", "accuracy", "step"])
def test_a_number_without_measure_breaks_no_picture(samples, key, value):
    """As a worker prints it, an agent reads it and the manager passes it on."""
    line = progress_of(f'{{"progress": {{"{key}": {value}}}}}'.encode())
    assert line is not None
    told = Progress.model_validate_json(Progress(node="n", allocation="a", job="j", task="t", data=line).encode())
    view = samples.job("running")
    view = view.model_copy(
        update={"placement": [task.model_copy(update={"progress": told.data}) for task in view.placement]}
    )
    view = JobView.model_validate_json(view.model_dump_json())
    for width in (40, 80, 200):
        assert all(len(line) <= 200 for line in lines(job_live(view, NOW), width))


def test_a_plan_with_numbers_without_measure_is_shown(samples):
    fields = {"plan": "p", "job": "j", "attempt": 1, "solver": "s", "version": 1, "committed_at": samples.submitted}
    huge = int("9" * 400)
    plan = PlanView(**fields, considered={"decision_ms": huge, "time_limit_s": huge, "seed": 1})
    assert wide(committed_plan(plan, "1m"))[0].startswith("decided by s, committed 1m ago")


def test_news_tell_what_changed(samples):
    queued, running = samples.job("queued", waiting=NEVER), samples.job("running")
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


def test_what_workers_report_of_their_own_is_shown(samples):
    own = {"progress": {"round": 3, "rounds": 40, "throughput": 12.345678, "phase": "x" * 50, "a": 1, "b": 2, "c": 3}}
    view = samples.job("running", round_=3)
    first = view.placement[0].model_copy(update={"progress": own})
    shown = wide(job_live(view.model_copy(update={"placement": [first, *view.placement[1:]]}), samples.submitted))
    assert "MORE" in shown[2]
    assert f"throughput 12.35, phase {'x' * 19}…, a 1, b 2, ..." in shown[3]
    assert "MORE" not in wide(job_live(view, samples.submitted))[2]


def test_what_else_workers_report_takes_one_line_each(samples):
    own = {"result": {"rounds": 40, "rank": 0, "world_size": 2, "algorithm": "ring", "digest": "e5" * 30}}
    view = samples.job("succeeded")
    told = view.model_copy(update={"placement": [t.model_copy(update={"progress": own}) for t in view.placement]})
    for width in (60, 80, 100):
        shown = lines(job_live(told, samples.submitted), width)
        assert [line.split()[0] for line in shown[2:6] if line] == ["WORKER", "worker-0", "worker-1"]
        assert max(map(len, shown)) <= width
        assert "algorithm ring" in shown[3]
        assert "rank" not in shown[3]


def test_columns_that_no_worker_fills_are_left_out(samples):
    view = samples.job("running")
    silent = [task.model_copy(update={"progress": None}) for task in view.placement]
    assert wide(job_live(view.model_copy(update={"placement": silent}), samples.submitted))[2].split() == [
        "WORKER",
        "NODE",
        "STATE",
    ]


def test_signals_have_names(samples):
    view = samples.job("failed")
    for code, said in ((137, "failed (SIGKILL)"), (139, "failed (SIGSEGV)"), (255, "failed (exit 255)")):
        task = view.placement[0].model_copy(update={"exit_code": code})
        shown = wide(job_live(view.model_copy(update={"placement": [task]}), samples.submitted))
        assert any(said in line for line in shown)
        news = job_news(samples.job("running"), view.model_copy(update={"placement": [task]}))
        assert ("was ended by SIG" in news[-1]) is (code != 255)


def test_what_the_jobs_reason_says_of_a_worker_is_not_said_again(samples):
    failed = samples.job("failed", reason="worker-0 on n0 exited with code 1")
    assert job_news(samples.job("running"), failed) == [
        "digits failed: worker-0 on n0 exited with code 1",
        "worker-1 on n1 failed with exit code 1",
    ]
    assert "exited" not in "\n".join(wide(job_live(failed, NOW, reasons=False)))
    assert "waits" not in "\n".join(wide(job_live(samples.job("queued", waiting=NARROW), NOW, reasons=False)))


@pytest.mark.parametrize("width", [60, 80])
def test_a_job_fits_a_narrow_terminal(samples, width):
    shown = lines(job_live(samples.job("running", round_=10), samples.submitted), width)
    assert max(map(len, shown)) <= width
    assert shown[3].split()[-1] == "95.1%"
    assert shown[7].endswith("40 Mbit/s  38.5 Mbit/s")
    kept = {"WORKER", "NODE", "STATE", "ROUND", "ACCURACY"} if width == 60 else {"PROGRESS", "LOSS"}
    assert kept <= set(shown[2].split())


def test_how_far_and_how_fast_a_malleable_job_is(samples):
    elastic = {"group": "worker", "workers": {"min": 1, "max": 8}, "speed": {"unit": "images", "total": 40_000}}
    sizes = {size: {"rate": rate, "at": NOW} for size, rate in ((2, 5.678), (1, 3.6))}
    told = {"step": 12_000, "attempt": 1, "incarnation": 1, "at": NOW, "sizes": sizes}
    view = samples.job("running").model_dump() | {"elastic": elastic, "size": 2}
    known = JobView.model_validate(view | {"speeds": told, "predicted": {1: 3.6, 2: 5.7, 3: 7.1}})
    shown = [" ".join(line.split()) for line in lines(job_facts(known, NOW))]
    assert "done 12,000 of 40,000 images" in shown
    assert "measured 3.6 images/s with 1, 5.68 with 2" in shown
    assert "expected 3.6 images/s with 1, 5.7 with 2, 7.1 with 3" in shown
    text = "\n".join(lines(job_facts(JobView.model_validate(view), NOW)))
    assert not any(name in text for name in ("done", "measured", "expected"))


def test_what_each_worker_has_of_cpu_that_changes(samples):
    elastic = {"group": "worker", "workers": {"min": 2, "max": 2}, "cpu": {"min": "250m", "max": 2}}
    view = samples.job("running").model_dump() | {"elastic": elastic, "size": 2}
    known = JobView.model_validate(view)
    before = "500m for each worker, of 250m to 2"
    assert before in "\n".join(lines(job_facts(known, NOW)))
    changed = [task.model_copy(update={"cpu_desired": 800}) for task in known.placement]
    shown = "\n".join(lines(job_facts(known.model_copy(update={"placement": changed}), NOW)))
    assert "800m for each worker, of 250m to 2" in shown
    assert before not in shown
    rigid = samples.job("running")
    assert "for each" not in "\n".join(lines(job_facts(rigid, NOW)))


def test_steps_that_are_the_rounds_are_not_shown_twice(samples):
    for step, shown in ((3, False), (300, True)):
        task = samples.job("running").placement[0]
        task = task.model_copy(update={"progress": {"progress": {"round": 3, "rounds": 40, "step": step}}})
        view = samples.job("running").model_copy(update={"placement": [task]})
        assert ("MORE" in "\n".join(wide(job_live(view, samples.submitted)))) is shown
