"""The table of a task's move: each step, and what holds in every course of facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.task_move import OVER, STEPS, WANTS, MoveFact, MoveKind, MoveState, after

K, S, F = MoveKind, MoveState, MoveFact
EVERY_STEP = [
    (kind, state, fact, then)
    for kind, states in STEPS.items()
    for state, facts in states.items()
    for fact, then in facts.items()
]


@pytest.mark.parametrize(
    ("kind", "facts", "states"),
    [
        (
            K.STATELESS,
            [F.NETWORK_READY, F.NEW_RUNS, F.SWITCHED, F.OLD_GONE],
            [S.BESIDE, S.SWITCHING, S.LEAVING, S.DONE],
        ),
        (
            K.STATEFUL,
            [F.NETWORK_READY, F.OLD_GONE, F.CARRIED, F.NEW_RUNS],
            [S.STOPPING, S.CARRYING, S.STARTING, S.DONE],
        ),
        (
            K.STATEFUL,
            [F.NETWORK_READY, F.OLD_GONE, F.CARRIED, F.NEW_FAILED, F.NEW_GONE, F.OLD_RUNS],
            [S.STOPPING, S.CARRYING, S.STARTING, S.CLEARING, S.RETURNING, S.KEPT],
        ),
        (K.STATEFUL, [F.NETWORK_READY, F.OLD_GONE, F.CARRY_FAILED], [S.STOPPING, S.CARRYING, S.RETURNING]),
        (K.STATELESS, [F.NETWORK_READY, F.NEW_FAILED, F.NEW_GONE], [S.BESIDE, S.WITHDRAWING, S.KEPT]),
    ],
)
def test_the_courses_of_the_page(kind: MoveKind, facts: list[MoveFact], states: list[MoveState]) -> None:
    state, passed = S.RESERVED, []
    for fact in facts:
        state = after(kind, state, fact)
        passed.append(state)
    assert passed == states


@pytest.mark.parametrize(("kind", "state", "fact", "then"), EVERY_STEP)
def test_a_step_leads_on_and_its_repetition_nowhere_else(
    kind: MoveKind, state: MoveState, fact: MoveFact, then: MoveState
) -> None:
    assert after(kind, state, fact) == then
    assert after(kind, then, fact) == then


@pytest.mark.parametrize("kind", MoveKind)
def test_every_state_is_reached_and_comes_to_an_end(kind: MoveKind) -> None:
    steps = STEPS[kind]
    reached = {S.RESERVED}
    while more := {then for state in reached for then in steps.get(state, {}).values()} - reached:
        reached |= more
    assert reached == steps.keys() | OVER
    ending = set(OVER)
    while more := {state for state, facts in steps.items() if ending & set(facts.values())} - ending:
        ending |= more
    assert ending >= reached


@pytest.mark.parametrize("state", MoveState)
def test_what_runs_or_is_carried_has_its_capacity(state: MoveState) -> None:
    wants = WANTS[state]
    assert wants.source or not wants.old
    assert wants.destination or not (wants.new or wants.carries)
    assert wants.source or state in OVER  # a move can turn back until it is over


@given(kind=st.sampled_from(MoveKind), facts=st.lists(st.sampled_from(MoveFact), max_size=30))
def test_facts_in_any_order_never_make_two_copies_of_state(kind: MoveKind, facts: list[MoveFact]) -> None:
    """A copy may run from when it is wanted until it is surely gone."""
    state = S.RESERVED
    old, new = True, False
    for fact in facts:
        old, new = old and fact != F.OLD_GONE, new and fact != F.NEW_GONE
        before, state = state, after(kind, state, fact)
        wants = WANTS[state]
        old, new = old or wants.old, new or wants.new
        if kind is K.STATEFUL:
            assert not (wants.new and old), (before, fact, state)
            assert not (wants.old and new), (before, fact, state)
            assert not (wants.carries and old), (before, fact, state)
        if before in OVER:
            assert state == before
