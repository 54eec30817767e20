"""Journeys through the dashboard in a real browser, against real services on emulated hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dashboard_page import ONE_TASK, PLACES, Open
from fault_cluster import FaultCluster, recorded_job
from playwright.sync_api import expect
from resized_jobs import rigid

from ces_client.audit import PROMISES
from ces_common.messages.audits import AuditFinding, AuditReport
from ces_common.roles import Role
from ces_testbed.services import MANAGER

pytestmark = [pytest.mark.needs("browser"), pytest.mark.timeout(600)]

ODD = "<script>alert(1)</script> \u202eevil"  # a program, and text that runs from right to left


def aside(call: Callable[[], None]) -> None:
    """In a thread of its own: playwright's loop runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()


def test_a_job_is_followed_from_the_list_to_its_flows_and_cancelled(
    cluster: FaultCluster, opened: Open, open_folder: Path
) -> None:
    job = cluster.submit(rigid("followed", open_folder / "hold", 3))
    view = cluster.await_state(job, "running")
    with opened() as seen:
        assert "code" not in seen.page.url
        seen.go("jobs")
        seen.heading("Jobs")
        seen.page.get_by_role("link", name="followed").click()
        seen.heading("followed")
        for task in view.placement:
            seen.text(task.name)
            seen.text(str(task.node))
        seen.text(re.compile(r"10 Mbit/s"))  # given to each flow
        flow = seen.page.locator(".job-flows").get_by_role("button").first
        flow.focus()
        seen.page.keyboard.press("Enter")
        expect(flow).to_have_attribute("aria-pressed", "true")
        hops = seen.page.locator(".job-hops tbody tr")
        expect(hops).to_have_count(2)  # over the switch
        expect(hops.first).to_contain_text("10 Mbit/s")
        assert "flow=" in seen.page.url
        seen.page.get_by_role("button", name="Cancel…").click()
        seen.page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
        seen.text(re.compile("^cancelled$"))
    assert cluster.client.jobs.get(job).state == "cancelled"


def test_where_a_job_s_time_went_is_drawn(cluster: FaultCluster, opened: Open) -> None:
    job = cluster.submit(recorded_job("timed", 1))
    cluster.finish(job)
    with opened() as seen:
        seen.go(f"jobs/{job}")
        seen.heading("timed")
        seen.text("From its events: this attempt is not traced.")
        rows = seen.page.locator("table.trace tbody tr")
        expect(rows).to_have_count(7)  # the attempt, its three phases, three workers
        names = [text.strip() for text in rows.get_by_role("rowheader").all_inner_texts()]
        assert names[:4] == ["attempt", "queued", "network", "workers"]
        assert sorted(names[4:]) == ["w-0", "w-1", "w-2"]
        expect(seen.page.locator("table.trace svg.span-bar .took")).to_have_count(7)


def test_why_a_job_waits_and_for_whom_is_said_as_in_the_terminal(
    cluster: FaultCluster, opened: Open, open_folder: Path
) -> None:
    holder = cluster.submit(rigid("holder", open_folder / "hold", 8))
    cluster.await_state(holder, "running")
    job = cluster.submit(rigid("waiter", open_folder / "hold2", 3))
    with opened() as seen:
        seen.go("queue")
        seen.page.locator("main").get_by_role("link", name="waiter").first.wait_for()
        seen.page.locator("main").get_by_role("link", name="holder").first.wait_for()
        seen.page.get_by_role("link", name="waiter").first.click()
        seen.heading("waiter")
        seen.text(re.compile(r"waits for"))
        seen.page.get_by_role("link", name="holder").first.click()
        seen.heading("holder")
    for each in (job, holder):
        cluster.client.jobs.cancel(each)


def test_what_goes_down_is_shown_and_leads_to_its_cause(cluster: FaultCluster, opened: Open) -> None:
    hosts = cluster.cluster.hosts
    with opened() as seen:
        seen.go("links/n1/s1")
        seen.heading("n1")
        try:
            aside(lambda: hosts.tear("n1", "s1"))
            seen.text(re.compile(r"^\s*down"))
            seen.text("to-s1")  # why
            seen.go("")
            attention = seen.page.locator(".attention")
            expect(attention.get_by_role("link", name="n1 › s1")).to_have_count(1)
        finally:
            aside(hosts.up)
        seen.text("All nodes are ready and take work, all links are up.")


def test_a_wire_that_was_torn_is_seen_whole_again_in_the_past(
    cluster: FaultCluster, opened: Open, open_folder: Path
) -> None:
    hosts, job = cluster.cluster.hosts, cluster.submit(rigid("watched", open_folder / "hold", 3))
    cluster.await_state(job, "running")
    (used, *_) = (flow for flow in cluster.client.jobs.flows(job).flows if len(flow.path) > 1)
    src, dst = used.path[:2]
    with opened() as seen:
        seen.go("links")
        fullest = seen.page.get_by_role("table", name="Links").locator("tbody tr").first
        expect(fullest.locator("[data-title=Flows]")).to_have_text(re.compile("[1-9]"))
        expect(fullest.locator("[data-title=Reserved]")).to_contain_text("bit/s (")
        seen.go(f"links/{src}/{dst}")
        seen.heading(src)
        seen.text(re.compile(r"^\s*up"))
        try:
            aside(lambda: hosts.tear(src, dst))
            seen.text(re.compile(r"^\s*down"))
            before = seen.page.get_by_role("table", name="Flows that reserved it until it went down")
            lost = before.get_by_role("row").filter(has_text="watched").first
            expect(lost).to_contain_text("10 Mbit/s")
            seen.page.get_by_role("link", name="The cluster at the moment before").click()
            panel = seen.page.get_by_role("complementary", name="What is selected")
            panel.get_by_role("row", name="State").get_by_text("up").first.wait_for()
            seen.go("replay")
            seen.text("This is the last failure.")
            around = seen.page.get_by_role("complementary", name="Events around it")
            current = around.locator("[aria-current]").filter(has_text="link.changed")
            expect(current.first).to_contain_text("down")
            expect(around).not_to_contain_text("session.")
            seen.page.get_by_label("Only what changes the map").uncheck()
            expect(around).to_contain_text("session.")
            seen.go("events")
            changes = seen.page.locator(".rows tbody tr").filter(has_text="link.changed")
            torn = changes.filter(has_text=re.compile(f"{src} › {dst}")).first  # the newest comes first
            torn.locator("[data-number]").click()
            seen.heading("Replay")
            seen.text(re.compile(r"In the past"))
            seen.page.get_by_text("past", exact=True).wait_for()
            seen.go(f"{seen.page.url.partition('#/')[2]}&link={src}%3E{dst}")
            panel.get_by_role("row", name="State").get_by_text("down").first.wait_for()
            seen.page.get_by_role("button", name="One change back").click()
            panel.get_by_role("row", name="State").get_by_text("up").first.wait_for()
            expect(panel.get_by_role("row", name="Reserved")).to_contain_text("bit/s (")
            seen.page.get_by_role("link", name="Jobs").last.click()
            seen.page.get_by_role("row").filter(has_text="watched").get_by_text("running").wait_for()
            seen.page.get_by_role("link", name="Back to now").click()
            seen.page.get_by_text("live", exact=True).wait_for()
        finally:
            aside(hosts.up)
        seen.text("All nodes are ready and take work, all links are up.")
    cluster.client.jobs.cancel(job)


def test_a_manager_that_starts_again_is_followed_again_and_nothing_is_lost(cluster: FaultCluster, opened: Open) -> None:
    with opened() as seen:
        seen.excused = "Failed to load resource|ERR_|Load failed"
        seen.go("events")
        seen.heading("Events")
        before = cluster.submit(recorded_job("before", 0))
        seen.page.get_by_text("before").first.wait_for()
        cluster.finish(before)
        cluster.cluster.restart(MANAGER, {})
        after = cluster.submit(recorded_job("after", 0))
        cluster.finish(after)
        seen.page.get_by_text("after").first.wait_for()
        numbers = [
            int(each)
            for each in seen.page.locator("main [data-number]").evaluate_all("n => n.map(e => e.dataset.number)")
        ]
        assert len(numbers) == len(set(numbers)) > 0
        seen.go("")
        seen.page.get_by_text("live", exact=True).wait_for()


def test_a_token_that_is_revoked_ends_the_session(cluster: FaultCluster, opened: Open) -> None:
    made = cluster.client.tokens.create("leaver", Role.VIEWER, tenants=["default"])
    with opened(made.token) as seen:
        seen.excused = "401"
        assert seen.page.get_by_role("button", name="Cordon").count() == 0
        cluster.client.tokens.revoke("leaver")
        seen.heading("Sign in")
        seen.text(re.compile("revoked"))


def test_text_of_others_is_text(cluster: FaultCluster, opened: Open) -> None:
    job = recorded_job("odd", 0, replicas=1)
    job["tasks"][0] = {
        **{key: job["tasks"][0][key] for key in ("name", "replicas", "resources", "image")},
        "command": ["python", "-c", f"print({ODD!r})"],
    }
    del job["flows"]
    submitted = cluster.submit(job)
    cluster.finish(submitted)
    with opened() as seen:
        seen.go(f"jobs/{submitted}")
        seen.heading("odd")
        seen.text("<script>alert(1)</script>")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_used_by_everybody(
    cluster: FaultCluster, opened: Open, open_folder: Path, scheme: str
) -> None:
    running = cluster.submit(rigid(f"runs-{scheme}", open_folder / "runs", 6))
    cluster.await_state(running, "running")
    waiting = cluster.submit(rigid(f"waits-{scheme}", open_folder / "waits", 4))
    found: list[str] = []
    with opened(color_scheme=scheme) as seen:
        places = [*PLACES, f"jobs/{running}", f"jobs/{waiting}", "nodes/n1", "links/n1/s1"]
        for place in places:
            seen.go(place)
            seen.page.locator("main h1").first.wait_for()
            expect(seen.page.locator("main").get_by_text("Loading…")).to_have_count(0)
            found += seen.axe()
    for each in (waiting, running):
        cluster.client.jobs.cancel(each)
    assert found == []


def test_by_keyboard_alone(cluster: FaultCluster, opened: Open, open_folder: Path) -> None:
    job = cluster.submit(rigid("by-key", open_folder / "hold", 2))
    cluster.await_state(job, "running")
    with opened(locale="en-GB") as seen:
        keyboard = seen.page.keyboard
        keyboard.press("g")
        keyboard.press("j")
        seen.heading("Jobs")
        keyboard.press("/")
        keyboard.type("by-key")
        seen.page.get_by_role("link", name="by-key").wait_for()
        for _ in range(60):
            keyboard.press("Tab")
            if seen.page.evaluate("document.activeElement.textContent") == "by-key":
                break
        keyboard.press("Enter")
        seen.heading("by-key")
    cluster.client.jobs.cancel(job)


def test_a_job_is_submitted_after_a_dry_run_and_runs_where_that_said(cluster: FaultCluster, opened: Open) -> None:
    with opened() as seen:
        seen.excused = "422"  # what is refused while it is typed, in the browser's own words
        seen.go("submit")
        seen.heading("Submit")
        text = seen.page.get_by_role("textbox").first
        text.fill(ONE_TASK.replace("500m", "lots"))
        seen.text(re.compile("lots"))
        text.fill(ONE_TASK)
        seen.page.locator("main").get_by_role("link", name=re.compile(r"^n\d$")).first.wait_for()
        seen.page.get_by_role("img", name=re.compile("1 task on 1 node")).wait_for()
        seen.page.get_by_role("button", name="Submit", exact=True).click()
        seen.heading("typed")
        job = seen.page.url.rpartition("/")[2]
    assert cluster.finish(job).name == "typed"


def test_a_drain_is_looked_at_before_it_is_done(cluster: FaultCluster, opened: Open, open_folder: Path) -> None:
    job = cluster.submit(rigid("stays", open_folder / "hold", 1))
    view = cluster.await_state(job, "running")
    node = str(view.placement[0].node)
    with opened() as seen:
        seen.go(f"nodes/{node}")
        seen.heading(node)
        seen.text(re.compile(r"\d+s ago"))  # when it was last heard, asked for by its name
        seen.page.get_by_role("button", name="Drain…").click()
        dialog = seen.page.get_by_role("dialog")
        dialog.get_by_text("there is another place now").wait_for()
        assert dialog.get_by_role("link", name="stays").get_attribute("href") == f"#/jobs/{job}"
        assert seen.axe() == []
        dialog.get_by_role("button", name="Do nothing").click()
    assert cluster.client.jobs.get(job).state == "running"
    assert cluster.client.nodes.get(node).cordoned is False
    cluster.client.jobs.cancel(job)


def ces(cluster: FaultCluster, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CES_URL": cluster.cluster.url, "CES_TOKEN": cluster.cluster.token}
    command = [str(Path(sys.executable).with_name("ces")), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_an_audit_that_is_published_is_told_on_the_first_page_and_its_own(cluster: FaultCluster, opened: Open) -> None:
    cluster.finish(cluster.submit(recorded_job("audited", 0)))
    run = ces(cluster, "audit", "--publish", "-o", "json")
    assert run.returncode == 0, run.stdout + run.stderr
    last = json.loads(run.stdout)["last"]
    with opened() as seen:
        seen.text(re.compile(r"Last audit.* events? since", re.DOTALL))
        seen.page.get_by_role("link", name="every promise kept").click()
        seen.heading("Audit")
        seen.text(re.compile(rf"every promise kept.*events \d+ to {last}", re.DOTALL))
        seen.text("admin")
        seen.text(re.compile(rf"\d+ of {len(PROMISES)} promises were checked, [\d,]+ times in all"))
        rows = seen.page.get_by_role("table", name="Promises").get_by_role("row")
        expect(rows.filter(has_text="Each task runs in one place").filter(has_text="kept")).to_be_visible()
        seen.text(re.compile("what was given, not what was measured"))
        seen.text("Highest use")
        seen.page.set_viewport_size({"width": 340, "height": 700})
        for name in ("Promises", "Highest use"):
            box = seen.page.get_by_role("table", name=name).bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 340, name
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 340
        cluster.finish(cluster.submit(recorded_job("unread", 0)))
        seen.text(re.compile(r"[1-9]\d* events have come since"))
        assert seen.axe() == []


def test_a_finding_leads_to_its_event_its_job_and_its_node(cluster: FaultCluster, opened: Open) -> None:
    job = cluster.submit(recorded_job("found", 0))
    cluster.finish(job)
    events = [event for event in cluster.client.jobs.events_so_far(job) if event.type == "ces.v1.plan.committed"]
    shows = events[0].sequence
    assert shows is not None
    about = {"event": shows, "kind": "node-capacity", "text": f"cpu of node n1: 5 of 4 {ODD}", "job": job, "node": "n1"}
    report = AuditReport(
        version="1", began_at=datetime.now(UTC), took_s=1.0, events=shows, first=1, last=shows,
        checked={"node-capacity": 9, "log": shows, "held": 0}, kinds={"node-capacity": 3},
        findings=[AuditFinding.model_validate(about)],
    )  # fmt: skip
    first = cluster.client.audits.publish(report)
    with opened(color_scheme="dark") as seen:
        seen.page.locator("main").get_by_role("link", name="3 findings").click()
        seen.heading("Audit")
        seen.text(re.compile("and 2 more"))
        seen.text(re.compile("<script>alert"))
        assert seen.axe() == []
        broken = seen.page.get_by_role("table", name="Promises").get_by_role("row").nth(1)
        expect(broken).to_contain_text(re.compile("No node gives out more.*9 times.*3 findings", re.DOTALL))
        assert broken.get_by_role("link", name=str(shows)).get_attribute("href") == f"#/events?from={shows}"
        seen.text(re.compile("2 of 3 promises were checked"))
        seen.text("nothing to check")
        row = seen.page.get_by_role("table", name="Findings").get_by_role("row").nth(1)
        assert row.get_by_role("link", name="found").get_attribute("href") == f"#/jobs/{job}"
        assert row.get_by_role("link", name="n1").get_attribute("href") == "#/nodes/n1"
        row.get_by_role("link", name=str(shows)).click()
        seen.heading("Events")
        newest = seen.page.locator("main [data-number]").first
        expect(newest).to_have_text(str(shows))
        assert ces(cluster, "audit", "--publish").returncode == 0
        seen.page.keyboard.press("g")
        seen.page.keyboard.press("a")
        seen.text(re.compile("every promise kept"))
        seen.go(f"audit/{first.id}")
        seen.text(re.compile("and 2 more"))
        seen.page.get_by_role("link", name="Show the last one").click()
        seen.text(re.compile("every promise kept"))


def test_in_chinese(opened: Open) -> None:
    with opened(heading="概览", locale="zh-CN") as seen:
        assert seen.page.evaluate("document.documentElement.lang").startswith("zh")
