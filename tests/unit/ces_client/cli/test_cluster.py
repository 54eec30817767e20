"""Commands about the cluster: lists, nodes, topology, events."""

from __future__ import annotations

import json

import pytest
from ces_command import ces
from client_views import BERT, NARROW, NOW, SOON, entry, queue_status

from ces_common.messages.api import LinkProbeView, LinkView
from ces_common.messages.events import JobWaiting, new_event
from ces_common.messages.identities import Identity
from ces_common.messages.membership import ForgottenNode
from ces_common.messages.owner_calendar import OwnerCalendar
from ces_common.roles import Role


def test_get_lists(connected, samples):
    connected.on("GET", "jobs", [samples.job()])
    connected.on("GET", "nodes", [samples.node("n0")])
    connected.on("GET", "links", [LinkView(src="n0", dst="s0", bandwidth=10**9, reserved=0, kind="veth")])
    connected.on("GET", "queue", [])
    connected.on("GET", "whoami", Identity(name="dev", role=Role.VIEWER))
    assert "digits" in ces("get", "jobs").stdout
    assert "0/4 cores" in ces("get", "nodes").stdout
    assert "n0 › s0" in ces("get", "links").stdout
    assert ces("get", "queue").stdout == "no job waits\n"
    assert json.loads(ces("get", "queue", "-o", "json").stdout) == []
    assert json.loads(ces("get", "nodes", "-o", "json").stdout)[0]["name"] == "n0"


def test_admins_see_devices_that_have_applied_among_the_nodes(connected, samples):
    connected.on("GET", "nodes", [samples.node("n0")])
    connected.on("GET", "applicants", [samples.applicant("roof1")])
    connected.on("GET", "whoami", Identity(name="root", role=Role.ADMIN))
    n0, roof1 = ces("get", "nodes").stdout.splitlines()[1:]
    assert n0.split()[:2] == ["n0", "ready"]
    assert roof1.split()[:2] == ["roof1", "applied"]
    assert [each["name"] for each in json.loads(ces("get", "nodes", "-o", "json").stdout)] == ["n0"]
    told = ces("get", "applicants").stdout
    assert "192.0.2.11" in told
    assert "SHA256:" in told
    assert json.loads(ces("get", "applicants", "-o", "json").stdout)[0]["state"] == "applied"


def test_events(connected, samples):
    stream = samples.sse(
        samples.job_event(3, "running"), (None, "progress", {}), samples.job_event(4, "succeeded"), so_far=4
    )
    connected.on("GET", f"jobs/{samples.id}/events", stream)
    connected.on("GET", "events", stream)
    for words in (["events"], ["events", samples.id], ["events", samples.id, "-f"]):
        first, second = ces(*words).stdout.splitlines()
        assert first == f"     3 09:00:00 job.running {samples.id} state=running"
        assert "job.succeeded" in second
    assert [json.loads(line)["sequence"] for line in ces("events", "-o", "json").stdout.splitlines()] == [3, 4]


def test_events_of_one_actor(connected, samples):
    def event(number, actor):
        _, kind, told = samples.job_event(number, "queued")
        return number, kind, told | ({"actor": actor} if actor else {})

    connected.on(
        "GET", "events", samples.sse(event(1, "ci"), event(2, None), event(3, "ops"), event(4, "ci"), so_far=4)
    )
    shown = ces("events", "--actor", "ci").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["1", "4"]
    assert shown[0].endswith("state=queued by ci")


def test_nodes_and_topology(connected, samples, tmp_path):
    for what in ("cordon", "uncordon", "drain"):
        connected.on("GET", "nodes", [samples.node("n1").model_copy(update={"cordoned": what == "uncordon"})])
        connected.on("POST", f"nodes/n1/{what}", samples.node("n1"))
        assert ces("node", what, "n1").stdout == f"{what} requested for n1\n"
        assert json.loads(ces("node", what, "n1", "-o", "json").stdout)["name"] == "n1"
    connected.on("POST", "nodes/n1/rotate-key", samples.node("n1"))
    assert ces("node", "rotate-key", "n1").stdout.startswith("n1 tells its neighbours the next key")
    assert json.loads(ces("node", "rotate-key", "n1", "-o", "json").stdout)["name"] == "n1"
    for what, said in (("reclaim", "n1 is given back"), ("lend", "n1 is lent"), ("measure", "n1 measures, for 15")):
        connected.on("POST", f"nodes/n1/{what}", samples.node("n1"))
        assert ces("node", what, "n1").stdout.startswith(said)
        assert json.loads(ces("node", what, "n1", "-o", "json").stdout)["name"] == "n1"
    usual = OwnerCalendar(times="Mon-Fri 08:00-18:00", zone="Europe/Berlin")
    for method in ("PUT", "DELETE"):
        view = samples.node("n1").model_copy(update={"calendar": usual if method == "PUT" else None})
        connected.on(method, "nodes/n1/calendar", view)
    said = ces("node", "calendar", "n1", usual.times, "--zone", usual.zone).stdout
    assert said.startswith("n1: usually needs it Mon-Fri 08:00-18:00 (Europe/Berlin), n")  # now, or next on
    assert json.loads(connected.requests[-1].content) == {"times": usual.times, "zone": usual.zone}
    assert ces("node", "calendar", "n1", "--clear").stdout == "n1: when its owner needs it is not known\n"
    for credential, said in (("revoked", "refused from now on"), ("pending", "goes on trying"), ("kept", "stays good")):
        connected.on("POST", "nodes/n1/forget", ForgottenNode(node="n1", jobs=["j1", "j2"], credential=credential))
        first, second = ces("node", "forget", "n1").stdout.splitlines()
        assert first == "n1 is forgotten; jobs that lose their place: j1, j2"
        assert said in second
    assert json.loads(ces("node", "forget", "n1", "-o", "json").stdout)["credential"] == "kept"
    connected.on("POST", "nodes/tokens", {"token": "abc", "expires_at": samples.submitted.isoformat()}, status=201)
    made = ces("node", "token")
    assert made.stdout == "abc\n"
    assert "lets one node join" in made.stderr
    path = tmp_path / "topology.yaml"
    path.write_text("links: [{src: a, dst: b, bandwidth: 1Gbit}]\n")
    link = LinkView(src="a", dst="b", bandwidth=10**9, reserved=0, kind="veth").model_dump()
    connected.on("PUT", "topology", {"version": 2, "nodes": [], "links": [link]})
    done = ces("topology", "apply", path)
    assert "1 links, 0 media" in done.stdout
    assert done.stderr == "not joined yet: a, b; links to them count once they have\n"
    there = [samples.node(name).model_dump(mode="json") for name in ("a", "b")]
    connected.on("PUT", "topology", {"version": 2, "nodes": there, "links": [link]})
    assert ces("topology", "apply", path).stderr == ""
    assert json.loads(connected.requests[-1].read()) == {"links": [{"src": "a", "dst": "b", "bandwidth": "1Gbit"}]}
    path.write_text("links: [{src: a}]\n")
    assert "links[0].dst" in ces("topology", "apply", path, code=2).stderr


@pytest.mark.parametrize("what", ["jobs", "nodes", "applicants", "links", "queue"])
def test_an_empty_list_says_so_to_people_and_stays_a_list_for_scripts(connected, what):
    connected.on("GET", what, [])
    connected.on("GET", "whoami", Identity(name="dev", role=Role.VIEWER))
    (line,) = ces("get", what).stdout.splitlines()
    assert line.startswith("no ")
    assert ces("get", what, "-o", "json").stdout == "[]\n"


def test_the_queue_says_where_it_is_not_the_schedulers_own(connected):
    page = {"items": [entry().model_dump(mode="json")], "next": None, "remark": "no scheduler is there"}
    connected.on("GET", "queue", page)
    listed = ces("get", "queue")
    assert "digits" in listed.stdout
    assert listed.stderr == "no scheduler is there\n"
    assert [each["name"] for each in json.loads(ces("get", "queue", "-o", "json").stdout)] == ["digits"]


def test_the_event_of_a_waiting_job_reads_as_a_sentence(connected, samples):
    told = JobWaiting(
        job=samples.id, name="digits", reason=NARROW, queue_status=queue_status(holders=[BERT], start_at=SOON)
    )
    event = new_event("ces/manager", "job", "waiting", samples.id, told, NOW).model_dump(mode="json")
    connected.on("GET", "events", samples.sse((7, "ces.v1.job.waiting", event), so_far=7))
    out = ces("events").stdout
    assert "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02" in out


def test_what_a_node_is_already_is_not_requested(connected, samples):
    cordoned = samples.node("n1").model_copy(update={"cordoned": True})
    for what, node, said in [
        ("cordon", cordoned, "n1 is cordoned already"),
        ("uncordon", samples.node("n1"), "n1 takes tasks already"),
        ("drain", cordoned, "n1 is drained already"),
    ]:
        connected.on("GET", "nodes", [node])
        connected.on("POST", f"nodes/n1/{what}", node)
        assert ces("node", what, "n1").stdout == f"nothing to do: {said}\n"
    connected.on("GET", "nodes", [cordoned.model_copy(update={"allocations": ["j/t"]})])
    assert ces("node", "drain", "n1").stdout == "drain requested for n1\n"


def test_probing_measures_one_link_or_all_that_are_up(connected):
    found = LinkProbeView(src="n0", dst="s0", bandwidth=10**9, sent=1e9, received=8e8, measured=8 * 10**8)
    connected.on("POST", "links/n0/s0/probe", found)
    assert "800 Mbit/s" in ces("probe", "n0", "s0").stdout
    assert json.loads(connected.sent("POST", "links/n0/s0/probe")[0].content) == {"seconds": 1.0}
    for words in (["probe"], ["probe", "n0"], ["probe", "n0", "s0", "--all"]):
        assert "ces probe n1 n2" in ces(*words, code=2).stderr
    links = [
        LinkView(src=src, dst="s0", bandwidth=10**9, reserved=0, kind="veth", state=state)
        for src, state in (("n0", "up"), ("n1", "down"), ("n2", "up"))
    ]
    connected.on("GET", "links", links)
    ended = ces("probe", "--all", "-o", "json", code=1)
    assert [each["src"] for each in json.loads(ended.stdout)] == ["n0"]
    assert "n2 › s0" in ended.stderr
    assert not connected.sent("POST", "links/n1/s0/probe")


def test_a_drain_is_tried_without_doing_it(connected):
    job = {"name": "ring", "tenant": "default", "state": "running", "priority": 7, "workers": ["w-0", "w-1"]}
    jobs = [
        job | {"id": "a", "elsewhere": True, "malleable": True},
        job | {"id": "b", "name": "narrow", "elsewhere": False, "reason": "needs 3 cores"},
        job | {"id": "c", "name": "odd"},
    ]
    connected.on(
        "POST", "nodes/n1/drain", {"node": "n1", "cordoned": False, "jobs": jobs, "remark": "one is not known"}
    )
    text = ces("node", "drain", "n1", "--dry-run").stdout
    for said in (
        "there is a place",
        "from a checkpoint",
        "no place: needs 3 cores",
        "not known",
        "nothing was changed",
    ):
        assert said in text
    assert (
        json.loads(ces("node", "drain", "n1", "--dry-run", "-o", "json").stdout)["jobs"][1]["reason"] == "needs 3 cores"
    )
    assert {str(request.url.query, "ascii") for request in connected.sent("POST", "nodes/n1/drain")} == {"dry_run=true"}
    connected.on("POST", "nodes/n1/drain", {"node": "n1", "cordoned": True, "jobs": []})
    assert "no job has anything on n1, which is cordoned already" in ces("node", "drain", "n1", "--dry-run").stdout
