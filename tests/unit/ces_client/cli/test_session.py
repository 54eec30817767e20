"""Jobs by id or name."""

from __future__ import annotations

import json

from ces_command import ces


def test_a_name_stands_for_its_latest_job(connected, samples):
    connected.on(
        "GET", "jobs", [samples.job(id="older", submitted_at=samples.submitted.replace(hour=1)), samples.job()]
    )
    for what, method, path in [
        ("cancel", "DELETE", f"jobs/{samples.id}"),
        ("pause", "POST", f"jobs/{samples.id}/pause"),
        ("resume", "POST", f"jobs/{samples.id}/resume"),
    ]:
        connected.on("GET", f"jobs/{samples.id}", samples.job("paused" if what == "resume" else "running"))
        connected.on(method, path, samples.job("running"), status=202)
        assert ces(what, "digits").stdout == f"{what} requested for digits ({samples.id}), now running\n"
        assert json.loads(ces(what, "digits", "-o", "json").stdout)["id"] == samples.id
        assert len(connected.sent(method, path)) == 2
    connected.on("DELETE", f"jobs/{samples.id}", samples.job("succeeded"), status=202)
    assert ces("cancel", "digits").stdout == f"nothing to cancel: digits ({samples.id}) has succeeded\n"
    connected.on("GET", "jobs", [])
    assert "No job is named digits" in ces("cancel", "digits", code=2).stderr


def test_two_jobs_of_one_name_are_told_apart(connected, samples):
    older = samples.job(id="older", submitted_at=samples.submitted.replace(hour=1))
    connected.on("GET", "jobs", [samples.job(), older])
    connected.on("GET", f"jobs/{samples.id}", samples.job())
    note = ces("describe", "job", "digits").stderr
    assert f"2 jobs are named digits; this is the latest, {samples.id}." in note
    assert "Not over either, and to be named by their ids: older" in note
    connected.on("GET", "jobs", [samples.job("cancelled"), older])
    connected.on("GET", f"jobs/{samples.id}", samples.job("cancelled"))
    assert "It is over; not over, and to be named by their ids: older" in ces("describe", "job", "digits").stderr
    over = samples.job("succeeded", id="older", submitted_at=samples.submitted.replace(hour=1))
    connected.on("GET", "jobs", [samples.job(), over])
    assert ces("describe", "job", "digits").stderr == "", "one that is over is not meant"
