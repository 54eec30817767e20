"""The dashboard on a phone, and over a connection that breaks off: in a real browser, against real services."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from dashboard_page import ONE_TASK, PATIENCE_MS, PLACES, Open
from fault_cluster import FaultCluster
from playwright.sync_api import Route, expect
from resized_jobs import rigid

from ces_common.roles import Role

pytestmark = [pytest.mark.needs("browser"), pytest.mark.timeout(600)]


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_on_a_narrow_page_nothing_lies_beside_it_and_the_verdict_is_seen(
    cluster: FaultCluster, opened: Open, open_folder: Path, locale: str
) -> None:
    job = cluster.submit(rigid("narrow", open_folder / "hold", 3))
    cluster.await_state(job, "running")
    heading = {"en-GB": "Overview", "zh-CN": "概览"}[locale]
    with opened(heading=heading, viewport={"width": 340, "height": 700}, locale=locale) as seen:
        seen.excused = "422"  # of the file that is refused below
        for place in (*PLACES, f"jobs/{job}", "nodes/n1", "links/n1/s1", "map?link=n1%3Es1", "replay?show=queue"):
            seen.go(place)
            seen.page.locator("main h1").first.wait_for()
            expect(seen.page.locator("main").get_by_text(re.compile("Loading…|加载中"))).to_have_count(0)
            assert seen.page.evaluate("document.scrollingElement.scrollWidth") <= 340, place
            tops = seen.page.locator("header nav a").evaluate_all("all => all.map(a => Math.round(a.offsetTop))")
            assert len(set(tops)) <= 2, place
        seen.go("submit")
        verdict = seen.page.get_by_role("main").get_by_role("status")
        for text in (ONE_TASK.replace("500m", "lots"), ONE_TASK):
            seen.page.get_by_role("textbox").first.fill(text)
            expect(verdict).to_have_class("verdict")
            expect(verdict).to_be_in_viewport()
            seen.page.locator(".actions").first.scroll_into_view_if_needed()
            expect(verdict).to_be_in_viewport()
    cluster.client.jobs.cancel(job)


def test_a_graph_is_divided_drawn_and_becomes_a_job_file(cluster: FaultCluster, opened: Open) -> None:
    with opened(viewport={"width": 900, "height": 900}) as seen:
        seen.go("submit")
        seen.page.get_by_role("button", name="A graph of an application").click()
        ways = seen.page.get_by_role("region", name="Ways to divide it")
        expect(ways).to_contain_text("shown below", timeout=PATIENCE_MS)
        for text in ("by clusters", "not divided", "at random", "part 0 is above its capacity"):
            expect(ways).to_contain_text(text)
        seen.page.get_by_role("combobox").first.select_option("optimal")
        expect(ways).to_contain_text("proven to be the least", timeout=PATIENCE_MS)
        expect(seen.page.get_by_role("region", name="Parts")).to_contain_text("decode, detect, archive")
        seen.text("pictures has a place")
        assert seen.axe() == []
        seen.page.get_by_role("button", name="Write this job file").click()
        seen.page.get_by_role("button", name="Replace", exact=True).click()
        expect(seen.page.get_by_role("textbox").first).to_have_value(re.compile('"CES_VERTICES": "capture,'))
        expect(seen.page.get_by_role("main").get_by_role("status")).to_contain_text("pictures has a place")
    assert [job.name for job in cluster.client.jobs.list() if job.name == "pictures"] == []


def test_administrators_see_devices_that_have_applied(cluster: FaultCluster, opened: Open) -> None:
    keys = [f"SHA256:{letter * 43}" for letter in "AB"]
    told = httpx.post(f"{cluster.cluster.url}/v1/applicants", json={"name": "roof1", "host_keys": keys}, verify=False)
    assert told.status_code == 202
    viewer = cluster.client.tokens.create("looks", Role.VIEWER, tenants=["default"])
    with opened(viewport={"width": 340, "height": 700}) as seen:
        seen.go("nodes")
        part = seen.page.locator("section", has=seen.page.get_by_role("heading", name="Devices that have applied"))
        expect(part.locator("tbody tr")).to_contain_text("roof1")
        for text in ("applied", told.json()["address"], "root, 22", *keys):
            expect(part).to_contain_text(text)
        assert seen.page.evaluate("document.scrollingElement.scrollWidth") <= 340
        assert seen.axe() == []
    with opened(viewer.token) as seen:
        seen.go("nodes")
        seen.page.get_by_role("table", name="Nodes").wait_for()
        assert seen.page.get_by_text("Devices that have applied").count() == 0
    cluster.client.applicants.refuse("roof1")
    cluster.client.tokens.revoke("looks")


def test_what_breaks_off_while_it_is_loaded_is_loaded_again(opened: Open) -> None:
    with opened() as seen:
        seen.excused = "ERR_FAILED"
        gone = {"app/pages/nodes.js", "app/parts/rows.js", "app/map/map.css", "app/parts/menu.js"}

        def break_off(route: Route) -> None:
            """Each file once."""
            path = urlsplit(route.request.url).path.removeprefix("/ui/")
            if path not in gone:
                return route.continue_()
            gone.remove(path)
            return route.abort()

        seen.page.route("**/ui/**", break_off)
        seen.go("nodes")
        seen.heading("Nodes")
        seen.page.get_by_role("table", name="Nodes").wait_for()
        seen.go("map")
        seen.page.get_by_role("application", name=re.compile("^Map")).wait_for()
        menu = seen.page.locator("header .menu")
        menu.locator("summary").click()
        menu.get_by_role("button", name="Sign out").wait_for()
        assert gone == set()
        assert seen.page.get_by_text("could not be loaded").count() == 0
        seen.page.unroute("**/ui/**")

        never = "**/ui/app/parts/keys.js*"
        seen.page.route(never, lambda route: route.abort())
        menu.get_by_role("button", name="Show the keys").click()
        seen.page.get_by_text("A part of this page could not be loaded.").wait_for()
        seen.page.unroute(never)
        seen.page.get_by_role("button", name="Try again").click()
        seen.page.get_by_role("dialog", name="Keys").wait_for()
        assert seen.page.get_by_text("could not be loaded").count() == 0
