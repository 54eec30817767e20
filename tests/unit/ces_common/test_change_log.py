"""What changed since a moment is known without a look at everything."""

from hypothesis import given
from hypothesis import strategies as st

from ces_common.change_log import ChangeLog, Mark

NAMES = st.lists(st.sampled_from("abcdef"), max_size=4)


@given(st.lists(NAMES | st.none(), max_size=12), st.integers(1, 6))
def test_it_names_what_changed_since_or_says_that_it_does_not_know(steps: list[list[str] | None], kept: int) -> None:
    """None among the steps: everything may have changed."""
    log = ChangeLog(kept)
    marks = [log.mark]
    for step in steps:
        if step is None:
            log.begin()
        else:
            log.note(step)
        marks.append(log.mark)
    for at, mark in enumerate(marks):
        after = steps[at:]
        found, changed = log.since(mark), {name for step in after for name in step or ()}
        if None in after:
            assert found is None
        elif found is None:
            assert len({name for step in steps for name in step or ()}) > kept
        else:
            assert len(found) == len(set(found))
            assert set(found) == changed


def test_a_moment_of_another_log_says_nothing() -> None:
    log, other = ChangeLog(), ChangeLog()
    assert log.since(other.mark) is None
    assert log.since(Mark()) is None
    assert log.since(log.mark) == []


def test_marks_are_equal_only_while_nothing_changes() -> None:
    log = ChangeLog()
    before = log.mark
    log.note([])
    assert log.mark == before
    log.note("a")
    assert log.mark != before
    log.begin()
    assert log.mark not in (before, ChangeLog().mark)
