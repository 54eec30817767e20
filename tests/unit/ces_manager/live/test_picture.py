from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ces_manager.live.picture import Picture, changed, shown

NAMES = st.sampled_from(["a", "b", "c", "d"])
TENANTS = ["red", "blue"]
SECTIONS = st.dictionaries(
    NAMES, st.fixed_dictionaries({"used": st.integers(0, 2), "why": st.sampled_from([None, "x"])})
)
JOBS = st.dictionaries(
    NAMES, st.fixed_dictionaries({"tenant": st.sampled_from(TENANTS), "state": st.sampled_from(["queued", "running"])})
)
COUNTS = st.dictionaries(
    st.sampled_from(TENANTS), st.dictionaries(st.sampled_from(["queued", "running"]), st.integers(1, 3))
)
PICTURES = st.builds(
    Picture,
    version=st.integers(0, 9),
    event=st.integers(0, 9),
    at=st.just("now"),
    nodes=SECTIONS,
    links=SECTIONS,
    media=st.dictionaries(NAMES, st.integers(0, 2)),
    jobs=JOBS,
    shortfalls=JOBS,
    counts=COUNTS,
)
GROUPS = st.sampled_from([None, frozenset({"red"}), frozenset({"red", "blue"}), frozenset({"green"})])


def merged(whole: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """As a client takes it: fields into records, nothing where it says null."""
    after = json.loads(json.dumps(whole))
    for name, news in json.loads(json.dumps(change)).items():
        if name in ("at", "version", "event"):
            after[name] = news
            continue
        for key, value in news.items():
            if value is None:
                after[name].pop(key)
            elif isinstance(value, dict):
                after[name].setdefault(key, {}).update(value)
            else:
                after[name][key] = value
    return after


def said(document: Any) -> Any:
    """Without what is null, which is the same as not being there."""
    return json.loads(json.dumps(document), object_hook=lambda found: {k: v for k, v in found.items() if v is not None})


@given(before=PICTURES, after=PICTURES, tenants=GROUPS)
def test_who_merges_changes_sees_what_is_there(before: Picture, after: Picture, tenants: frozenset[str] | None) -> None:
    seen = merged(shown(before, tenants), changed(before, after, tenants))
    assert said(seen) == said(shown(after, tenants))


@given(before=PICTURES, after=PICTURES)
def test_nothing_of_another_tenant_is_told(before: Picture, after: Picture) -> None:
    for document in (shown(after, frozenset({"red"})), changed(before, after, frozenset({"red"}))):
        assert "blue" not in json.dumps(document)
    foreign = sum(after.counts.get("blue", {}).values())
    mine = shown(after, frozenset({"red"}))["counts"]
    assert sum(mine.values()) == sum(shown(after, None)["counts"].values()) - foreign


@given(picture=PICTURES, tenants=GROUPS)
def test_what_has_not_changed_is_not_told(picture: Picture, tenants: frozenset[str] | None) -> None:
    assert changed(picture, picture, tenants) == {"at": picture.at, "version": picture.version, "event": picture.event}


def test_a_region_says_its_name_to_everybody() -> None:
    assert "region" not in shown(Picture(1, 5, "then", {}, {}, {}, {}, {}, {}), None)
    assert shown(Picture(1, 5, "then", {}, {}, {}, {}, {}, {}, "north"), [])["region"] == "north"


def test_only_fields_that_changed_are_told() -> None:
    before = Picture(1, 5, "then", {"n1": {"used": 1, "cpu": 4}, "n2": {"used": 0, "cpu": 4}}, {}, {}, {}, {}, {})
    after = Picture(2, 7, "now", {"n1": {"used": 2, "cpu": 4}}, {}, {}, {}, {}, {})
    assert changed(before, after, None) == {
        "at": "now",
        "version": 2,
        "event": 7,
        "nodes": {"n1": {"used": 2}, "n2": None},
    }
