"""Make the pictures of the dashboard in docs/images again: ``python docs/pictures.py [--out FOLDER] [--narrow]``.

As root, with chromium and iptables. Emulated hosts run real jobs: one link loses half of what it is given, one is down,
and two jobs wait. Each page is taken in light and in dark, as a PNG of few colours. ``--narrow``: as on a phone, to
look at.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from ces_client import Client, Context
from ces_client.bridge import HERE, bridge_beside
from ces_common.runtime import RuntimeKind
from ces_testbed.cluster import Cluster
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, free_port
from ces_testbed.topology import Topology

DOCS = Path(__file__).resolve().parent
COLOURS = 128
MOST_BYTES = 150_000
WIDE, NARROW = (1280, 800), (320, 640)
PATIENCE_S = 120.0
SITES = {"harbour": 3, "market": 3, "station": 2}

# Sends more to its peers than its flows may carry, as a camera does.
SENDER = """
import json, os, socket, time
peers = {peer["task"]: peer for peer in json.loads(os.environ["CES_PEERS"])}
flows = [flow["dst"] for flow in json.loads(os.environ["CES_FLOWS"]) if flow["src"] == os.environ["CES_TASK"]]
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
began, sent = time.monotonic(), 0
while True:
    for name in flows:
        try:
            out.sendto(bytes(1200), (peers[name]["address"], peers[name]["port"]))
        except OSError:
            pass
    sent += 1
    time.sleep(max(0.0, began + sent * 0.0008 - time.monotonic()))
"""


def topology() -> Topology:
    """Three sites around a switch each, the sites in a triangle; hosts of different sizes."""
    nodes, links = [], []
    for site, hosts in SITES.items():
        nodes.append({"name": f"{site}-switch", "cpu": 0, "labels": {"site": site}})
        for number in range(1, hosts + 1):
            name = f"{site}-{number}"
            nodes.append({"name": name, "cpu": 2 if number < 3 else 1, "memory": "32Gi", "labels": {"site": site}})
            links.append({"src": name, "dst": f"{site}-switch", "bandwidth": "1Gbit" if number == 1 else "100Mbit"})
    names = list(SITES)
    for one, other, rate in zip(names, names[1:] + names[:1], ("100Mbit", "40Mbit", "60Mbit"), strict=True):
        links.append({"src": f"{one}-switch", "dst": f"{other}-switch", "bandwidth": rate})
    return Topology.model_validate({"nodes": nodes, "links": links})


def job(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    task = {
        "name": "camera", "replicas": replicas, "command": ["python", "-u", "-c", SENDER],
        "resources": {"cpu": cpu, "memory": "128Mi"},
    }  # fmt: skip
    flows = {"topology": "ring", "bandwidth": {"min": "5Mbit", "max": "8Mbit"}}
    return {"name": name, "tasks": [task], "flows": flows}


def wait_for(what: str, found: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.5)
    return answer


def spoil(cluster: Cluster, src: str, dst: str) -> None:
    """From now on, much of what comes over this link is lost."""
    space = ["ip", "netns", "exec", cluster.hosts.data_plane(dst)]
    lost = ["-m", "statistic", "--mode", "random", "--probability", "0.5", "-j", "DROP"]
    subprocess.run([*space, "iptables", "-I", "FORWARD", "-i", f"to-{src}", *lost], check=True)


@contextmanager
def cluster_with_jobs() -> Iterator[tuple[Cluster, Client, str]]:
    """Gives the job whose flows fall short."""
    with tempfile.TemporaryDirectory(prefix="ces-pictures-") as folder:
        spec = ClusterSpec(
            name=f"pic{os.getpid()}", topology=topology(), runtime=RuntimeKind.PROCESS, network="tc",
            api_port=free_port(LOCALHOST, set()), save_context=False, log_level="warning",
        )  # fmt: skip
        with Cluster(spec, Files(Path(folder) / "cluster")) as cluster, cluster.client() as client:
            cluster.hosts.tear("market-switch", "station-switch")
            wait_for("a link is down", lambda: any(link.state == "down" for link in client.topology.links()))
            short = client.jobs.submit(job("street-cameras", 5, "1500m")).id
            running = wait_for("the job runs", lambda: (view := client.jobs.get(short)).state == "running" and view)
            for name, replicas, cpu in (
                ("night-survey", 2, "500m"),
                ("city-model", 6, "1"),
                ("tram-delays", 4, "1500m"),
            ):
                client.jobs.submit(job(name, replicas, cpu))
            path = next(flow.path for flow in running.flows if len(flow.path) > 2)
            spoil(cluster, path[0], path[1])
            wait_for("a shortfall", lambda: any(flow.shortfall for flow in client.jobs.flows(short).flows))
            yield cluster, client, short


DRY_RUN = """name: harbour-watch
tasks:
- name: watch
  replicas: 3
  command: [python, -m, watch]
  resources: {cpu: 750m, memory: 256Mi}
flows:
  topology: ring
  bandwidth: {min: 2Mbit, max: 10Mbit}
"""


def overview(page: Page, short: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/")
    page.get_by_text("Flows carried at less").wait_for()


def the_map(page: Page, short: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/map?job={short}")
    page.locator(".map-flow").first.wait_for()


def the_job(page: Page, short: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/jobs/{short}")
    page.locator(".job-flows button", has=page.locator(".state")).first.click()
    page.locator(".job-hops").first.wait_for()
    page.evaluate("document.querySelector('.job-picture').scrollIntoView({ block: 'center' })")


def submit(page: Page, short: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/submit")
    page.locator("#job-text").fill(DRY_RUN)
    page.locator(".job-flows button").filter(has_text="bit/s").first.click()


PAGES = {"overview": overview, "map": the_map, "job": the_job, "submit": submit}


def small_png(picture: bytes) -> bytes:
    """Of few colours, which is enough for pages."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    out = io.BytesIO()
    image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def take(browser: Browser, address: str, scheme: str, size: tuple[int, int], short: str, out: Path) -> None:
    """All pages in one colour scheme."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-GB", reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    page.goto(address)
    page.get_by_role("heading", level=1).filter(has_text="Overview").wait_for()
    for name, open_page in PAGES.items():
        open_page(page, short)
        page.locator("header .live .good").wait_for()
        page.wait_for_timeout(2500)  # places of nodes are found, and values drawn
        picture = small_png(page.screenshot(full_page=size == NARROW))
        if size == WIDE and len(picture) > MOST_BYTES:
            raise ValueError(f"{name}: {len(picture)} bytes are more than {MOST_BYTES}")
        file = out / f"dashboard-{name}-{scheme}{'-narrow' if size == NARROW else ''}.png"
        file.write_bytes(picture)
        print(f"{file}: {len(picture)} bytes")
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DOCS / "images")
    parser.add_argument("--narrow", action="store_true")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("error: chromium is not installed")
    with cluster_with_jobs() as (cluster, client, short), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            authority = cluster.layout.authority
            with bridge_beside(Context(cluster.url, cluster.token, ca=str(authority))) as port:
                address = f"http://{HERE}:{port}/ui/#code={client.dashboard_code().code}"
                take(browser, address, scheme, NARROW if asked.narrow else WIDE, short, asked.out)
        browser.close()


if __name__ == "__main__":
    main()
