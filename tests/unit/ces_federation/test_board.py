from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from ces_common.jobfile import JobFile
from ces_common.messages.regions import Summary
from ces_federation.board import OLD_S, Board
from ces_federation.choice import need_of

FILE = {"name": "x", "tasks": [{"name": "w", "command": ["true"]}]}
OWN = IPv4Network("10.64.0.0/16")


def summary(region: str, block: str = "10.65.0.0/16", **more: object) -> Summary:
    return Summary.model_validate({"region": region, "block": block, "epoch": "e", **more})


def board(*peers: str) -> Board:
    return Board("a", OWN, peers or ("b", "c"))


def states(board: Board, now: float) -> dict[str, str]:
    return {view.name: view.state for view in board.views(None, now)}


def test_a_region_is_silent_then_ready_then_old() -> None:
    seen = board()
    assert states(seen, 0.0) == {"a": "here", "b": "silent", "c": "silent"}
    seen.note("b", summary("b"), 0.0)
    assert states(seen, OLD_S)["b"] == "ready"
    assert seen.usable(OLD_S).keys() == {"b"}
    assert states(seen, OLD_S + 0.1)["b"] == "old"
    assert seen.usable(OLD_S + 0.1) == {}


def test_a_region_speaks_for_itself_only() -> None:
    seen = board()
    with pytest.raises(ValueError, match="tells a summary of c"):
        seen.note("b", summary("c"), 0.0)
    with pytest.raises(ValueError, match="region d"):
        seen.note("d", summary("d"), 0.0)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (summary("b", "10.64.128.0/17"), "overlap this region's"),
        (summary("b", "10.0.0.0/8"), "at most"),
        (summary("b", "0.0.0.0/0"), "at most"),
        (summary("b", "8.8.0.0/16"), "private"),
        (summary("b", "127.0.0.0/16"), "private"),
        (summary("b", protocol=1), "version 1"),
    ],
)
def test_nothing_is_placed_where_something_is_wrong_and_it_is_said(told: Summary, why: str) -> None:
    seen = board()
    seen.note("b", told, 0.0)
    view = seen.views(None, 0.0)[1]
    assert view.state == "refused"
    assert view.remark is not None
    assert why in view.remark
    assert seen.usable(0.0) == {}


def test_what_one_region_tells_says_nothing_of_another() -> None:
    """A job runs in one other region as a whole, so that their blocks never meet."""
    seen = board()
    seen.note("b", summary("b"), 0.0)
    seen.note("c", summary("c"), 0.0)
    assert seen.usable(0.0).keys() == {"b", "c"}
    seen.note("c", summary("c", "0.0.0.0/0"), 0.0)
    assert seen.usable(0.0).keys() == {"b"}


def test_blocks_are_told_and_who_meets_whom() -> None:
    seen = board("b", "c", "d")
    seen.note("b", summary("b", "10.65.0.0/16"), 0.0)
    seen.note("c", summary("c", "10.64.0.0/15"), 0.0)
    views = {view.name: view for view in seen.views(None, 0.0)}
    assert {name: str(view.block) for name, view in views.items()} == {
        "a": str(OWN),
        "b": "10.65.0.0/16",
        "c": "10.64.0.0/15",
        "d": "None",
    }
    assert {name: view.overlaps for name, view in views.items()} == {"a": ["c"], "b": ["c"], "c": ["a", "b"], "d": []}
    assert not any(view.overlaps for view in seen.views(None, OLD_S + 0.1)), "it may be mended since"


def test_the_block_of_a_region_that_says_nothing_more_is_forgotten() -> None:
    seen = board()
    seen.note("b", summary("b", str(OWN)), 0.0)
    view = seen.views(None, OLD_S + 0.1)[1]
    assert (view.state, view.remark) == ("old", None)


def test_a_summary_is_as_old_as_when_it_was_made_whatever_the_clocks_say() -> None:
    seen = board("b")
    for now in range(0, 6, 2):  # a clock that is half a minute ahead
        seen.note("b", summary("b", made_at=1030.0 + now), float(now))
    assert seen.age_s("b", 4.0) == 0.0
    seen.note("b", summary("b", made_at=1030.0 + 6), 15.0)  # it was held up on its way
    assert seen.age_s("b", 15.0) == 9.0
    assert seen.usable(16.5) == {}
    seen.note("b", summary("b", made_at=1030.0 + 5), 16.6)  # one that was overtaken says nothing new
    assert seen.age_s("b", 16.6) == pytest.approx(10.6)


def test_a_clock_that_is_put_right_spoils_ages_for_a_minute_at_most() -> None:
    seen = board("b")
    seen.note("b", summary("b", made_at=1030.0), 0.0)
    for now in range(2, 70, 2):
        seen.note("b", summary("b", made_at=1000.0 + now), float(now))
    assert seen.age_s("b", 68.0) == 0.0


def test_why_a_region_is_not_asked_is_told() -> None:
    file = JobFile.model_validate(FILE | {"regions": ["b", "c", "d", "e"]})
    seen = board("b", "c", "d", "e", "f")
    seen.note("b", summary("b"), 20.0)
    seen.note("c", summary("c", str(OWN), accepts=["default"]), 20.0)
    seen.note("d", summary("d"), 0.0)
    why = seen.why_not(need_of(file), 20.0)
    assert why.keys() == {"b", "c", "d", "e"}
    assert why["b"] == "it accepts no jobs of tenant default"
    assert "overlap" in why["c"]
    assert why["d"] == "it was not heard for more than 10 s"
    assert why["e"] == "it was not heard yet"
    assert seen.epochs() == {"b": "e", "c": "e", "d": "e"}
