"""How versions follow each other."""

from __future__ import annotations

import pytest

from ces_core.evolution.state import BASE, KEPT, State, StateError, Version, candidate_of


def version(number: int) -> Version:
    about = {"sha256": "0", "policy": "p", "learned_until_s": 0.0, "decisions": 1, "synthetic": 1, "seed": 0}
    return Version(name=f"v{number}", made_s=float(number), **about)


def test_the_former_one_stays_beside_the_live_one_and_comes_back() -> None:
    promoted = State().promoted("v1", 10.0, "a gain")
    assert (promoted.live, promoted.former, promoted.promoted_s) == ("v1", BASE, 10.0)
    back = promoted.rolled_back(20.0, "a loss")
    assert (back.live, back.former, back.returned, back.promoted_s) == (BASE, None, ("v1",), 10.0)
    assert [(each.at_s, each.what, each.version, each.why) for each in back.history] == [
        (10.0, "promoted", "v1", "a gain"),
        (20.0, "rolled back", "v1", "a loss"),
    ]


def test_nothing_is_promoted_while_frozen_but_an_operator_may_go_back() -> None:
    frozen = State().promoted("v1", 1.0, "").with_frozen(True, 2.0, "holiday")
    with pytest.raises(StateError, match="frozen: ces evolve freeze --off"):
        frozen.promoted("v2", 3.0, "")
    assert frozen.rolled_back(3.0, "").live == BASE
    assert frozen.with_frozen(False, 4.0, "").promoted("v2", 5.0, "").live == "v2"
    assert frozen.with_frozen(True, 4.0, "") is frozen


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(StateError, match="no former version"):
        State().rolled_back(1.0, "")
    with pytest.raises(StateError, match="v1 is live already"):
        State().promoted("v1", 1.0, "").promoted("v1", 2.0, "")


def test_the_newest_that_had_no_turn_yet_is_the_candidate() -> None:
    versions = [version(number) for number in (1, 2, 3, 4)]
    assert candidate_of(State(), []) is None
    assert candidate_of(State(), versions) == version(4)
    assert candidate_of(State(live="v4", former="v3", returned=("v2",)), versions) == version(1)
    assert candidate_of(State(live="v1"), versions[:1]) is None


def test_the_latest_changes_are_remembered() -> None:
    state = State()
    for number in range(KEPT):
        state = state.with_frozen(not state.frozen, float(number), "")
    state = state.with_frozen(not state.frozen, 1e6, "the last")
    assert len(state.history) == KEPT
    assert state.history[-1].why == "the last"
