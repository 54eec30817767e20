"""Regions, jobs that run elsewhere, and the shares of GPU cards on the dashboard: in a real browser, against two real
regions whose cards are made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from dashboard_page import Chromium, Tab, dashboard, tab
from fault_cluster import FaultCluster, star
from playwright.sync_api import expect
from region_clusters import Regions, running_regions
from waiting import wait_for

from ces_common.roles import Role
from ces_testbed.topology import Topology

pytestmark = [pytest.mark.needs("browser"), pytest.mark.timeout(600)]
FAKES = "GPU-first:T4:16Gi,GPU-second:P100:8Gi"
SLEEP = "print('it runs elsewhere', flush=True); import time; time.sleep(600)"


def with_cards(made: Topology) -> Topology:
    known = made.model_dump(mode="json", exclude_defaults=True)
    for node in known["nodes"]:
        node |= {} if node["name"] == "s1" else {"gpu": 2}
    return Topology.model_validate(known)


@pytest.fixture(scope="module")
def _regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    folder = tmp_path_factory.mktemp("dreg")
    made = {"home": star(1, cpu="500m"), "far": with_cards(star(1))}
    with running_regions(folder, made, settings={"CES_GPU_FAKE": FAKES}) as regions:
        yield regions


@pytest.fixture
def regions(_regions: Regions) -> Iterator[Regions]:
    home = _regions.clusters["home"]
    wait_for(lambda: [each.state for each in home.client.regions.list()] == ["here", "ready"], "they hear each other")
    yield _regions
    _regions.check()


@contextmanager
def opened(cluster: FaultCluster, chromium: Chromium, token: str | None = None, **options: Any) -> Iterator[Tab]:
    environment = {"CES_URL": cluster.cluster.url, "CES_TOKEN": token or cluster.cluster.token}
    with dashboard(environment) as address, tab(chromium, address, **options) as made:
        made.page.locator("main h1").first.wait_for()
        yield made


def sleeper(name: str, **more: Any) -> dict[str, Any]:
    resources = {"cpu": "100m", "memory": "64Mi", **more.pop("resources", {})}
    task = {"name": "w", "command": ["python", "-c", SLEEP], "resources": resources}
    return {"name": name, "tasks": [task | more.pop("task", {})], **more}


def fits(seen: Tab) -> None:
    """Nothing lies beside a narrow page, and everybody can use it."""
    seen.page.set_viewport_size({"width": 320, "height": 700})
    assert seen.page.evaluate("document.scrollingElement.scrollWidth") <= 320, seen.page.url
    assert seen.axe() == []
    seen.page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_regions_and_what_they_hold_are_followed_by_keyboard(regions: Regions, chromium: Chromium, scheme: str) -> None:
    home, far = regions.clusters["home"], regions.clusters["far"]
    job = home.submit(sleeper(f"away-{scheme}", resources={"cpu": "1"}, regions=["any"]))
    home.await_state(job, "elsewhere")
    wait_for(lambda: home.client.jobs.get(job).remote_state == "running", "home hears that it runs")
    with opened(home, chromium, color_scheme=scheme, locale="en-GB") as seen:
        seen.page.get_by_role("link", name="Regions").wait_for()
        seen.page.keyboard.press("g")
        seen.page.keyboard.press("i")
        seen.heading("Regions")
        picture = seen.page.get_by_role("region", name="Regions and what they tell of themselves")
        other = picture.get_by_role("listitem").filter(has_text=regions.names["far"])
        expect(other).to_contain_text("1 job of ours there")
        expect(other).to_contain_text(re.compile(r"ready\s*\d+s ago"))
        expect(other).to_contain_text("T4: 1 whole")
        row = seen.page.get_by_role("table", name="Regions").get_by_role("row").filter(has_text=regions.names["far"])
        expect(row).to_contain_text("10.65.0.0/16")
        expect(row.locator("[data-title='Takes jobs of']")).to_have_text("default")
        held = seen.page.get_by_role("table", name="Held by others for this region").get_by_role("row")
        expect(held.filter(has_text=f"away-{scheme}")).to_contain_text(re.compile("committed.*running", re.DOTALL))
        fits(seen)
        picture.get_by_role("link", name=regions.names["far"]).focus()
        seen.page.keyboard.press("Enter")
        seen.heading(regions.names["far"])
        seen.text("Nodes by how many cores are free")
        seen.text("P100")
        fits(seen)
        held.filter(has_text=f"away-{scheme}").get_by_role("link", name=f"away-{scheme}").click()
        seen.heading(f"away-{scheme}")
        steps = seen.page.locator(".steps li")
        expect(steps).to_have_count(5)
        assert steps.filter(has_text=re.compile(r"\d\d:\d\d:\d\d")).count() == 4, "all but its end"
        seen.text("it runs elsewhere")  # its log, which is that region's
        fits(seen)
    with opened(far, chromium, color_scheme=scheme) as seen:
        seen.go("regions")
        guest = seen.page.get_by_role("table", name="Held here for others").get_by_role("row")
        expect(guest.filter(has_text=f"away-{scheme}")).to_contain_text(regions.names["home"])
        assert seen.axe() == []
    home.client.jobs.cancel(job)
    [there] = far.client.jobs.list(name=f"away-{scheme}")
    far.await_state(there.id, "cancelled")


def test_a_region_that_falls_silent_is_shown_as_such_and_says_so_in_chinese(
    regions: Regions, chromium: Chromium
) -> None:
    home, far = regions.clusters["home"], regions.clusters["far"]
    with opened(home, chromium, locale="zh-CN") as seen:
        seen.go("regions")
        seen.heading("区域")
        other = seen.page.locator(".region-others > li")
        expect(other).to_have_class("ready")
        far.cluster.kill("federation", stay_down=True)
        try:
            expect(other).to_have_class("old")
            expect(other).to_contain_text("已过时")
            fits(seen)
        finally:
            far.cluster.restart("federation")
        expect(other).to_have_class("ready")


def test_a_card_is_drawn_with_the_shares_of_jobs_and_names_ones_own_alone(regions: Regions, chromium: Chromium) -> None:
    far = regions.clusters["far"]
    t4, gpu = {"constraints": {"gpu_model": ["T4"]}}, {"share": "500m", "memory": "6Gi"}
    mine = far.submit(sleeper("half", resources={"gpu": gpu}, task=t4))
    theirs = far.submit(sleeper("quarter", resources={"gpu": "250m"}, task=t4, tenant="others"))
    for job in (mine, theirs):
        far.await_state(job, "running")
    viewer = far.client.tokens.create("card-viewer", Role.VIEWER, tenants=["default"]).token
    with opened(far, chromium) as seen:
        seen.go("nodes/n1")
        cards = seen.page.locator(".cards > li")
        expect(cards).to_have_count(2)
        first = cards.filter(has_text="GPU-first")
        expect(first).to_contain_text("T4, 16 GiB")
        expect(first).to_contain_text("can be shared: counted, not enforced")
        expect(first).to_contain_text(
            re.compile("half.*500m, 6 GiB.*quarter.*250m, 4 GiB.*free.*250m, 6 GiB", re.DOTALL)
        )
        expect(first.locator(".card-bar rect")).to_have_count(3)
        expect(cards.filter(has_text="GPU-second")).to_contain_text(re.compile("free.*all of it", re.DOTALL))
        fits(seen)
        first.get_by_role("link", name="half").focus()
        seen.page.keyboard.press("Enter")
        seen.heading("half")
    with opened(far, chromium, viewer, color_scheme="dark") as seen:
        seen.go("nodes/n1")
        first = seen.page.locator(".cards > li").filter(has_text="GPU-first")
        expect(first).to_contain_text(re.compile("half.*500m.*other tenants' jobs.*250m", re.DOTALL))
        assert seen.page.get_by_text("quarter").count() == 0
        assert seen.axe() == []
    for job in (mine, theirs):
        far.client.jobs.cancel(job)
