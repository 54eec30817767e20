"""``ces profile``."""

from __future__ import annotations

import json

from ces_command import ces

from ces_common.messages.work import GroupProfile, JobProfile


def test_a_job_by_its_name_with_the_nodes_that_are_asked_for(connected, samples):
    connected.on("GET", "jobs", [samples.job()])
    connected.on(
        "GET", f"jobs/{samples.id}/profile", JobProfile(job=samples.id, name="digits", groups=[GroupProfile(group="w")])
    )
    assert ces("profile", "digits", "--node", "n0", "--node", "n1").stdout.startswith("digits")
    assert connected.requests[-1].url.params.get_list("node") == ["n0", "n1"]
    assert json.loads(ces("profile", samples.id, "-o", "json").stdout)["groups"][0]["group"] == "w"
