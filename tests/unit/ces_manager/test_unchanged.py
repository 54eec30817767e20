"""For how long something has not changed."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView

from ces_manager.unchanged import Unchanged


def test_ages_begin_with_a_new_stamp() -> None:
    seen = Unchanged()
    assert seen.ages({"a": 1, "b": 1}, 10.0) == {"a": 0.0, "b": 0.0}
    assert seen.ages({"a": 1, "b": 2}, 15.0) == {"a": 5.0, "b": 0.0}
    assert (seen.age("a", 20.0), seen.shows("b", 2), seen.stamp("b")) == (10.0, True, 2)
    seen.ages({"b": 2}, 25.0)
    assert (seen.age("a", 30.0), seen.shows("a", 1), seen.stamp("a")) == (0.0, False, None), "it is forgotten"


def test_who_asks_during_a_look_is_answered_by_the_one_before() -> None:
    """As another thread may at any time: who is away must not seem to be there for a moment."""
    seen, told = Unchanged(), list[object]()

    class Slow(dict[str, Hashable]):
        def items(self) -> ItemsView[str, Hashable]:
            told.append((seen.age("away", 100.0), seen.shows("away", 1), seen.stamp("away")))
            return super().items()

    seen.ages({"away": 1}, 0.0)
    seen.ages(Slow(away=1), 100.0)
    assert told == [(100.0, True, 1)]
