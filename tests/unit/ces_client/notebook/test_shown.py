"""Answers in a notebook: what they show, that they are the same messages as ever, and that foreign text is text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from ces_client.notebook import shown
from ces_client.notebook.drawing import MOST_NODES
from ces_client.notebook.markup import MOST_CHARACTERS, MOST_ROWS, html, word
from ces_client.notebook.positions import place
from ces_common.jobfile import JobFile
from ces_common.messages import api
from ces_common.messages.dashboard import HeldFlow, Layout

EVIL = "<script>alert(1)</script>\"'\u202eevil & אבג"
JOB = JobFile.model_validate(
    {
        "name": "digits",
        "tasks": [{"name": "worker", "replicas": 2, "command": ["x"]}],
        "flows": {"topology": "ring", "bandwidth": {"min": "10Mbit", "max": "50Mbit"}},
    }
)


class Reader(HTMLParser):
    """Elements, attributes and text, as a browser takes them; everything opened must be closed in turn."""

    VOID = ("line", "circle", "rect")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.text += data


KNOWN = {
    "div",
    "style",
    "p",
    "bdi",
    "span",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "progress",
    "details",
    "summary",
    "svg",
    "g",
    "title",
    "line",
    "circle",
    "rect",
    "text",
}


def safe(page: str) -> Reader:
    """Only what is drawn here, nothing that runs, and nothing from elsewhere."""
    read = Reader(page)
    assert set(read.tags) <= KNOWN
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("href", "src", "xlink:href")]
    assert "url(" not in page
    assert "@import" not in page
    assert "\u202e" not in page
    return read


def link(src, dst, **more):
    return api.LinkView(**({"src": src, "dst": dst, "bandwidth": 100_000_000, "reserved": 0, "kind": "veth"} | more))


def cluster(samples, names, links, **more):
    return shown.TopologyView(version=1, nodes=[samples.node(name) for name in names], links=links, **more)


def test_answers_are_the_messages_that_they_were(client, manager, samples):
    plain = samples.job("running")
    manager.on("GET", "jobs/j1", plain)
    answer = client.jobs.get("j1")
    assert isinstance(answer, api.JobView)
    assert answer == plain
    assert plain == answer
    assert answer != plain.model_copy(update={"attempt": 2})
    assert answer != samples.node("n1")
    assert answer.model_dump_json() == plain.model_dump_json()
    assert repr(answer) == repr(api.JobView.model_validate_json(plain.model_dump_json()))
    assert answer._repr_html_().startswith("<div")


def test_a_map_has_nodes_wires_reserved_shares_and_trouble(samples):
    links = [
        link("n1", "s1", reserved=30_000_000),
        link("s1", "n1"),
        link("n2", "s1", state="down", reason="no carrier"),
    ]
    topology = cluster(samples, ["n1", "n2", "s1"], links, media={"wifi": 120_000_000})
    away = topology.nodes[1].model_copy(update={"state": "unreachable"})
    topology = topology.model_copy(update={"nodes": [topology.nodes[0], away, topology.nodes[2]]})
    page = topology._repr_html_()
    text = safe(page).text
    assert page == topology._repr_html_(), "the same cluster always looks the same"
    for said in ("3 nodes, 2 wires", "1 node unreachable", "1 link down", "30%", "no carrier", "wifi 120 Mbit/s"):
        assert said in text
    assert page.count("<circle") + page.count("<rect") == 3


def test_nodes_lie_where_operators_put_them(samples):
    topology = cluster(samples, ["a", "b"], [link("a", "b")])
    page = shown.ClusterMap(topology, Layout(positions={"a": [100.0, 0.0], "b": [0.0, 0.0]}))._repr_html_()
    a, b = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', page))
    assert a > b


def test_of_a_thousand_nodes_some_are_drawn_and_it_says_so(samples):
    names = [f"n{i:03}" for i in range(1000)]
    topology = cluster(samples, names, [link("n000", name) for name in names[1:]])
    far = topology.nodes[999].model_copy(update={"state": "unreachable"})
    page = topology.model_copy(update={"nodes": [*topology.nodes[:999], far]})._repr_html_()
    text = safe(page).text
    assert len(page) < 200_000
    assert page.count("<circle") == MOST_NODES
    assert f"{1000 - MOST_NODES} of 1,000 nodes are not drawn" in text
    assert f"+{1000 - MOST_NODES}" in text, "neighbours of the hub that are left out"
    assert "n999: unreachable" in text
    assert f"the first {MOST_ROWS} rows of 1,000" in text


def test_a_dry_run_says_where_to_and_why_not(client, manager):
    flow = {"src": "worker-0", "dst": "worker-1", "rate": 50_000_000, "path": ["n1", "s1", "n2"]}
    answer = {"feasible": True, "version": 4, "solver": "learned", "assignments": {"worker-0": "n1", "worker-1": "n2"}}
    manager.on("POST", "plans", answer | {"flows": [flow], "refused": {"worker-0": {"n3": EVIL}}})
    text = safe(client.plan(JOB)._repr_html_()).text
    for said in ("digits has a place", "n1 › s1 › n2", "10–50 Mbit/s", "50 Mbit/s", "n3", "<script>"):
        assert said in text


def test_a_plan_has_its_tasks_flows_and_refusals(samples):
    plan = shown.PlanView(
        plan="p", job="j", attempt=1, solver="learned", version=4, committed_at=samples.submitted,
        assignments={"worker-0": "n0", "worker-1": "n1"}, flows=samples.job("running").flows,
        considered={"refused": {"worker-0": {"n7": "cordoned"}}, "tried": {"more": [EVIL]}},
    )  # fmt: skip
    text = safe(plan._repr_html_()).text
    for said in ("n0 › s0 › n1", "40 Mbit/s", "n7", "cordoned", "decided by learned"):
        assert said in text


def test_flows_that_fall_short_are_marked(samples):
    flow = api.FlowRates(
        **samples.job("running").flows[0].model_dump(),
        shortfall=api.FlowShortfall(src="n0", dst="s0", measured=1e7, text="carries 10 Mbit/s"),
    )
    view = shown.JobFlowsView(id="j", name=EVIL, state="running", at=samples.submitted, flows=[flow])
    text = safe(view._repr_html_()).text
    assert "warning: worker-0 → worker-1 carries 10 Mbit/s" in text


def test_lists_show_themselves_and_stay_whole(client, manager, samples):
    manager.on("GET", "nodes", [samples.node("n1"), samples.node("n2")])
    found = client.nodes.list()
    assert "n2" in safe(found._repr_html_()).text
    assert [node.name for node in found] == ["n1", "n2"]
    assert list(found) == []
    manager.on("GET", "jobs", [samples.job(name=f"j{i}") for i in range(150)])
    assert "there are more" in safe(client.jobs.list()._repr_html_()).text
    manager.on("GET", "links", [link("n1", EVIL)])
    assert "<script>" in safe(client.topology.links()._repr_html_()).text
    manager.on("GET", "jobs", [])
    assert "none" in safe(client.jobs.list()._repr_html_()).text


def test_flows_samples_and_the_layout_are_asked_for(client, manager, samples):
    held = HeldFlow(
        job="j", name="digits", tenant="t", src="a", dst="b", min=1, max=2, rate=2, path=["n1", "n2"], number=1
    )
    manager.on("GET", "flows", [held])
    assert list(client.flows(link=("n1", "n2"), short=True)) == [held]
    assert dict(manager.requests[-1].url.params) == {"link": "n1>n2", "state": "short", "limit": "500"}
    assert "n1 › n2" in safe(client.flows(node="n1")._repr_html_()).text
    manager.on("GET", "samples", {"every_s": 20, "at": ["2026-01-01T09:00:00Z"], "values": {"used": [1.5]}})
    assert client.topology.samples("n1", "n2").values == {"used": [1.5]}
    assert dict(manager.requests[-1].url.params) == {"link": "n1>n2"}
    assert client.nodes.samples("n1").every_s == 20
    assert dict(manager.requests[-1].url.params) == {"node": "n1"}
    manager.on("GET", "layout", {"positions": {"n1": [1, 2]}})
    manager.on("GET", "topology", {"version": 1, "nodes": [], "links": []})
    assert client.topology.layout().positions == {"n1": [1.0, 2.0]}
    assert "0 nodes" in safe(client.topology.map()._repr_html_()).text


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_foreign_text_is_text(name, reason, medium):
    fields = {"state": "ready", "cordoned": False, "cpu": 1, "memory": 1, "gpu": 0, "cpu_allocated": 0, "network": "tc"}
    fields |= {"memory_allocated": 0, "gpu_allocated": 0, "arch": name, "runtime": reason, "labels": {name: reason}}
    nodes = [api.NodeView(name=each, host_address="a", subnet="b", **fields) for each in {name, "other"}]
    links = [link(name, "other", state="down", reason=reason, medium=medium)]
    safe(shown.TopologyView(version=1, nodes=nodes, links=links, media={medium: 1})._repr_html_())
    safe(shown.NodeView(**nodes[0].model_dump())._repr_html_())


@pytest.mark.parametrize("text", [EVIL, "x" * 10_000])
def test_a_word_is_escaped_and_bounded(text):
    assert len(word(text)) < MOST_CHARACTERS + 300
    assert "<script" not in word(text)
    assert ("more" in word(text)) == (len(text) > MOST_CHARACTERS)


def test_styles_hold_for_a_whole_text_and_for_parts():
    page = html(Text("all", style="bold red").append(" part", style="dim"))
    assert page.count("color:#d13438") == 2
    assert page.count("ces-dim") == 1


def test_what_views_do_not_use_has_no_html():
    with pytest.raises(TypeError, match="Columns"):
        html(Columns())
    assert "<td" not in html(Table("A"))


@given(st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=12), st.data())
def test_every_node_has_a_place_of_its_own(names, data):
    ordered = sorted(names)
    ends = st.tuples(st.sampled_from(ordered), st.sampled_from(ordered)).map(sorted).map(tuple)
    wires = data.draw(st.sets(ends.filter(lambda pair: pair[0] != pair[1]), max_size=20))
    kept = data.draw(st.sampled_from([{}, {ordered[0]: [3.0, 4.0]}]))
    points = place(ordered, wires, kept)
    assert points.keys() == names
    assert len({(round(x, 6), round(y, 6)) for x, y in points.values()}) == len(names)
    assert points == place(ordered, wires, kept)
