"""Plans and dry runs as people see them."""

from __future__ import annotations

import re

import pytest
from client_views import BERT, NARROW, NEVER, NOW, SOON, lines, wide

from ces_client import load_job
from ces_client.view.plan import committed_plan, plan_answer
from ces_common.jobfile import JobFile
from ces_common.messages.api import PlanForecast, PlanView
from ces_common.messages.events import Lack, Reason
from ces_common.messages.plans import FlowPlan, PolicyAdvice


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"position": 4, "start_at": SOON, "holders": [BERT]},
            "it would be number 4 in the queue and start at about 14:02, after job bert",
        ),
        ({"position": 1, "start_at": SOON}, "it would be number 1 in the queue and start at about 14:02"),
        (
            {"position": 4, "start_at": NOW},
            "it would be number 4 in the queue and start as soon as it is its turn and there is free capacity",
        ),
        ({"position": 4}, "it would be number 4 in the queue; its start cannot be predicted"),
    ],
)
def test_a_dry_run_tells_when_the_job_would_start(job_file, told, said):
    answer = PlanForecast(feasible=False, version=7, solver="search", reason=NARROW, **told)
    assert wide(plan_answer(load_job(job_file), answer, NOW))[2] == said


def test_a_dry_run_says_nothing_of_a_start_that_nobody_told_or_that_never_comes(job_file):
    silent = PlanForecast(feasible=False, version=7, solver="search", reason=NARROW)
    never = silent.model_copy(update={"position": 1, "reason": NARROW.model_copy(update={"forever": True})})
    for answer in (silent, never):
        assert "would" not in "\n".join(wide(plan_answer(load_job(job_file), answer, NOW)))


def test_a_dry_run_that_finds_a_place(job_file):
    answer = PlanForecast(
        feasible=True,
        version=7,
        solver="greedy",
        assignments={"worker-0": "n0", "worker-1": "n1"},
        flows=[FlowPlan(src="worker-0", dst="worker-1", rate=50_000_000, path=["n0", "n1"])],
        metrics={"composite": 0.97123, "load_imbalance": 0.05},
        bound=0.98765,
        refused={"worker-0": {"n2": "cordoned"}, "worker-1": {"n2": "cordoned"}},
    )
    shown = lines(plan_answer(load_job(job_file), answer, NOW))
    assert (
        shown[0] == "digits has a place  quality (composite) 0.9712 of at most 0.9877  load imbalance (0 is even) 0.05"
    )
    assert shown[3].split() == ["worker-0", "n0", "→", "worker-1", "n0", "›", "n1", "10–50", "Mbit/s", "50", "Mbit/s"]
    assert shown[4].split() == ["worker-1", "n1", "→", "worker-0", "–", "10–50", "Mbit/s", "–"]
    assert shown[7].split() == ["worker-0,", "worker-1", "n2", "cordoned"]


def test_a_dry_run_tells_at_which_size_a_malleable_job_would_start():
    job = JobFile.model_validate(
        {
            "name": "digits",
            "tasks": [{"name": "worker", "command": ["x"]}, {"name": "ps", "command": ["x"]}],
            "elastic": {"group": "worker", "workers": {"min": 1, "max": 8}},
        }
    )
    places = {"worker-0": "n0", "worker-1": "n1", "ps-0": "n0"}
    answer = PlanForecast(feasible=True, version=7, solver="greedy", assignments=places, size=2)
    shown = lines(plan_answer(job, answer, NOW))
    assert shown[0].startswith("digits has a place and would start with 2 worker")
    assert {line.split()[0]: line.split()[1] for line in shown[3:6]} == places
    more = lines(plan_answer(job, answer.model_copy(update={"cpu": 1500}), NOW))
    assert more[0].startswith("digits has a place and would start with 2 worker with 1.5 cores each")


def test_a_dry_run_that_finds_none(job_file):
    refused = {"worker-0": {"n0": "cordoned", "n1": "needs 500m [x]", "n2": "needs 500m [x]"}}
    answer = PlanForecast(feasible=False, version=7, solver="greedy", reason=NEVER, refused=refused)
    shown = lines(plan_answer(load_job(job_file), answer, NOW))
    assert shown[0] == "no place for digits"
    assert shown[1].startswith("flow a -> b needs 10 Mbit/s")
    assert [line.split() for line in shown[4:7]] == [
        ["TASKS", "NODES", "WHY", "NOT"],
        ["worker-0", "n0", "cordoned"],
        ["n1,", "n2", "needs", "500m", "[x]"],
    ]


SHORT = {
    "n1": [Lack(resource="cpu", needed=2500, available=900), Lack(resource="gpu", needed=1, available=0)],
    "n2": [Lack(resource="memory", needed=2**30, available=2**29)],
    "n3": [Lack(resource="memory", needed=2**30, available=2**29)],
}
REFUSED = {"n0": "cordoned", "n1": "cpu", "n2": "memory", "n3": "memory", "n4": "cpu beside the job's other tasks"}
ROWS = [
    ["w-0, w-1", "n0", "cordoned"],
    ["", "n1", "2.5 cores asked, 0.9 cores free; 1 GPU asked, 0 GPUs free"],
    ["", "n2, n3", "1 GiB asked, 512 MiB free"],
    ["", "n4", "cpu beside the job's other tasks"],
    ["w-2", "n1", "cpu"],
]


def rows(shown: list[str]) -> list[list[str]]:
    """Of the table of refusals."""
    start = next(index for index, line in enumerate(shown) if line.startswith("TASKS")) + 1
    ends = [shown[start - 1].index(column) for column in ("NODES", "WHY NOT")]
    table = shown[start : start + len(ROWS)]
    return [[line[: ends[0]].strip(), line[ends[0] : ends[1]].strip(), line[ends[1] :].strip()] for line in table]


def test_a_refused_node_is_told_with_what_is_asked_and_free(job_file, samples):
    refused = {"w-0": REFUSED, "w-1": REFUSED, "w-2": {"n1": "cpu"}}
    lacking = {"w-0": SHORT, "w-1": SHORT}
    answer = PlanForecast(feasible=False, version=7, solver="greedy", reason=NEVER, refused=refused, lacking=lacking)
    assert rows(wide(plan_answer(load_job(job_file), answer, NOW))) == ROWS
    kept = answer.model_dump(mode="json", include={"refused", "lacking"})
    shown = wide(committed_plan(plan(samples, kept), "5s"))
    assert rows(shown) == ROWS
    assert "other details" not in "\n".join(shown)
    strange = wide(committed_plan(plan(samples, kept | {"lacking": {"w-0": 5}}), "5s"))
    assert "cores asked" not in "\n".join(strange), "kept by another version"


def plan(samples, considered, **more) -> PlanView:
    fields = {"plan": "p", "job": "j", "attempt": 1, "solver": "search", "version": 4} | more
    return PlanView(**fields, committed_at=samples.submitted, considered=considered)


@pytest.mark.parametrize("sparing", [True, False])
def test_a_committed_plan_says_where_room_was_left_for_later_jobs(samples, sparing):
    shown = "\n".join(lines(committed_plan(plan(samples, {"sparing": sparing, "bound": 0.95}), "5s")))
    assert ("leave free capacity for later jobs" in shown) is sparing
    assert "other details" not in shown


def test_a_committed_plan_shows_what_was_considered(samples):
    considered = {"candidates": 3, "refused": {"worker-0": {"n1": "cpu [full]"}}, "score": 0.123456, "none": []}
    considered |= {"decision_ms": 5.25, "bound": 0.95}
    shown = "\n".join(lines(committed_plan(plan(samples, considered, metrics={"composite": 0.93}), "5s")))
    assert "decided by search in 5.2 ms, committed 5s ago (attempt 1, for version 4 of the cluster)" in shown
    assert "quality (composite) 0.93 of at most 0.95" in shown
    assert re.search(r"worker-0 +n1 +cpu \[full\]", shown)
    assert "score: 0.1235" in shown
    assert "bound" not in shown


def test_a_policys_part_in_a_plan_is_shown(samples, job_file):
    policy = {"version": "general-1234", "probabilities": {"worker-0": 0.98765, "worker-1": 0.5}}
    placed = {"worker-0": "n1", "worker-1": "n2"}
    followed = plan(samples, {"policy": policy, "fallback": None}, solver="imitation", assignments=placed)
    answer = PlanForecast(
        feasible=True, version=7, solver="imitation", assignments=placed, policy=PolicyAdvice.model_validate(policy)
    )
    for shown in (lines(committed_plan(followed, "5s")), lines(plan_answer(load_job(job_file), answer, NOW))):
        start = shown.index("policy general-1234")
        rows = [["TASK", "NODE", "PROBABILITY"], ["worker-0", "n1", "0.9877"], ["worker-1", "n2", "0.5000"]]
        assert [line.split() for line in shown[start + 1 : start + 4]] == rows
        assert "fallback" not in "\n".join(shown)


def test_that_no_policy_was_followed_is_shown(samples, job_file):
    why = "imitation could not be used: /policy.onnx: No such file or directory"
    unguided = plan(samples, {"policy": None, "fallback": why})
    answer = PlanForecast(feasible=False, version=7, solver="search", reason=NEVER, fallback=why)
    for shown in (lines(committed_plan(unguided, "5s")), lines(plan_answer(load_job(job_file), answer, NOW))):
        assert why in shown


def test_a_refusal_for_want_of_bandwidth_says_how_much_of_a_link_plans_may_reserve(job_file):
    for reason in (NARROW, NEVER):
        answer = PlanForecast(feasible=False, version=7, solver="search", reason=reason)
        shown = " ".join(wide(plan_answer(load_job(job_file), answer, NOW)))
        assert shown.count("(plans may reserve 95 % of a link)") == 1
    cpu = Reason(code="cpu-total", text="the tasks need 9 cores", forever=True)
    answer = PlanForecast(feasible=False, version=7, solver="search", reason=cpu)
    assert "95 %" not in " ".join(wide(plan_answer(load_job(job_file), answer, NOW)))


def test_how_a_plan_came_about_is_told_in_plain_words(samples):
    considered = {"seed": 7, "time_limit_s": 0.05, "decision_ms": 3.0, "bound": None, "sparing": False}
    shown = "\n".join(lines(committed_plan(plan(samples, considered), "5s")))
    assert "stopped after 0.05 s at the latest; seed 7: the same seed gives the same plan" in shown
    assert "other details" not in shown
    unbounded = plan(samples, considered | {"time_limit_s": None})
    assert "\nseed 7: the same seed" in "\n".join(lines(committed_plan(unbounded, "5s")))
