"""``ces adjust`` on a running job of the cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ces_command import ces

CERTIFICATE = {"text": "No adjustment with at most 3 moves gains more than 0.01, the moves paid.", "proven": True}
MOVE = {"task": "worker-0", "src": "n0", "dst": "n2", "seconds": 30.0, "requests": 300.0}
LATE = [{"code": "deadline", "message": "loop: 82 ms of 60 ms"}]
FLOW = {"src": "worker-0", "dst": "worker-1", "bandwidth": 8e6, "path": ["n2", "s", "n1"]}


def proposal(*moves: dict[str, Any], step: str = "moves", **more: Any) -> dict[str, Any]:
    change = {"step": step, "moves": list(moves), "objective": 0.9, "cost": 0.008, "flows": [FLOW]}
    whole = {"version": 7, "objective": 0.5, "gain": 0.39, "certificate": CERTIFICATE | {"moves": 3, "most": 0.9}}
    return whole | {"adjustment": change} | more


def test_a_job_is_shown_as_files_are_and_nothing_is_moved(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running"))
    connected.on("GET", f"jobs/{samples.id}/adjustment", proposal(MOVE))
    for options in ([], ["--dry-run"]):
        shown = ces("adjust", samples.id, *options).stdout
        assert shown.startswith("digits: keeps its limits, objective 0.5000\n")
        assert "8 Mbit/s" in shown
        assert "by moves: objective 0.9000, of which its moves take 0.0080, 0.3900 more than now" in shown
        assert CERTIFICATE["text"] in shown
    told = json.loads(ces("adjust", samples.id, "--moves", "1", "-o", "json").stdout)
    assert (told["job"], told["adjustment"]["moves"]) == (samples.id, [MOVE])
    assert connected.sent("GET", f"jobs/{samples.id}/adjustment")[-1].url.params["moves"] == "1"
    assert connected.sent("POST", f"jobs/{samples.id}/moves") == []


def test_one_move_is_made(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running"))
    connected.on("GET", f"jobs/{samples.id}/adjustment", proposal(MOVE))
    moving = {"id": "m", "task": "worker-0", "kind": "stateful", "state": "reserved", "source": "n0"}
    moving |= {"destination": "n2", "began_at": samples.submitted, "changed_at": samples.submitted}
    connected.on("POST", f"jobs/{samples.id}/moves", samples.job("running", move=moving), status=202)
    shown = ces("adjust", samples.id, "--apply").stdout
    assert f"worker-0 from n0 to n2: reserved; `ces describe job {samples.id}` shows how it goes" in shown
    assert "those of other flows stay" in shown
    (sent,) = connected.sent("POST", f"jobs/{samples.id}/moves")
    assert json.loads(sent.content) == {"task": "worker-0", "to": "n2"}
    assert json.loads(ces("adjust", samples.id, "--apply", "-o", "json").stdout)["carried_out"] == MOVE


@pytest.mark.parametrize(
    ("told", "words", "code"),
    [
        (proposal(MOVE, MOVE | {"task": "worker-1"}), "these 2 moves are worth it together", 0),
        (proposal(step="rates"), "for deadlines only by itself, where the job's file says `adjust`", 0),
        (proposal(step="rates"), "`--moves` has no say in that", 0),
        (proposal(step="paths", broken=LATE), "nothing is carried out: the service sets rates and paths", 1),
        (proposal(MOVE, remark="when one ends, all begin again", broken=LATE), "when one ends, all begin again", 1),
        (proposal(adjustment=None), "since nothing would change", 0),
        (
            proposal(adjustment=None, objective=None, broken=LATE),
            "loop: 82 ms of 60 ms",
            1,
        ),
    ],
)
def test_what_is_not_carried_out_is_said(connected, samples, told, words, code):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running"))
    connected.on("GET", f"jobs/{samples.id}/adjustment", told)
    assert words in ces("adjust", samples.id, "--apply", code=code).stdout
    assert json.loads(ces("adjust", samples.id, "--apply", "-o", "json", code=code).stdout)["carried_out"] is None
    assert connected.sent("POST", f"jobs/{samples.id}/moves") == []


def test_without_apply_it_is_said_as_well_what_the_service_cannot_do(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running"))
    connected.on("GET", f"jobs/{samples.id}/adjustment", proposal(step="paths", broken=LATE))
    assert "for deadlines only by itself" in ces("adjust", samples.id).stdout
    connected.on("GET", f"jobs/{samples.id}/adjustment", proposal(MOVE, remark="when one ends, all begin again"))
    assert "when one ends, all begin again" in ces("adjust", samples.id).stdout


def test_a_job_that_has_changed_meanwhile_is_left_alone(connected, samples):
    """It was placed anew after it was judged, or the task is elsewhere."""
    connected.on("GET", f"jobs/{samples.id}/adjustment", proposal(MOVE))
    before, again = samples.job("running"), samples.job("running")
    elsewhere = [task.model_copy(update={"node": "n9"}) for task in before.placement]
    for now in ({"attempt": before.attempt + 1}, {"placement": elsewhere}):
        connected.on("GET", f"jobs/{samples.id}", before, again.model_copy(update=now))
        said = ces("adjust", samples.id, "--apply", code=2).stderr
        assert "has changed meanwhile; ask again" in said
    assert connected.sent("POST", f"jobs/{samples.id}/moves") == []


def test_only_one_of_both_is_meant(connected, samples):
    assert "give one of them" in ces("adjust", samples.id, "--apply", "--dry-run", code=2).stderr
    for option, value in (("--basis", "job"), ("--paths", "3"), ("--path-metric", "delay")):
        said = ces("adjust", samples.id, option, value, code=2).stderr
        assert f"{option}: is for files" in said
    assert connected.requests == []


def test_a_refusal_is_an_error(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running"))
    no = samples.problem(409, "Conflict", "job digits has no goals to be adjusted for")
    connected.on("GET", f"jobs/{samples.id}/adjustment", no)
    assert "has no goals" in ces("adjust", samples.id, code=2).stderr
