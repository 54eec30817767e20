"""When a device is lent, and when its owner has it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.lending.decision import (
    BY_COMMAND,
    BY_LOAD,
    BY_MEMORY,
    BY_STALLS,
    CALM,
    Command,
    Look,
    Rules,
    Standing,
    commanded,
    looked,
)

RULES = Rules(quiet_s=60.0, longest_quiet_s=240.0)
STEP_S = 0.25


class Owner:
    """Looks at the device every quarter of a second, and writes down when it was lent and reclaimed."""

    def __init__(self, standing: Standing | None = None, rules: Rules = RULES) -> None:
        self.rules, self.now = rules, 1000.0
        self.standing = standing or Standing(lent=False, quiet_s=rules.quiet_s)
        self.changes: list[tuple[float, bool]] = []

    def looks(self, others: float, seconds: float = STEP_S, *, short: bool = False, stalled: float = 0.0) -> None:
        for _ in range(round(seconds / STEP_S)):
            since, self.now = self.now, self.now + STEP_S
            self._take(looked(self.standing, self.rules, Look(since, self.now, others, short, stalled)))

    def says(self, command: Command) -> None:
        self._take(commanded(self.standing, command, self.now))

    def _take(self, standing: Standing) -> None:
        if standing.lent is not self.standing.lent:
            self.changes.append((self.now, standing.lent))
        self.standing = standing


def lent(rules: Rules = RULES) -> Owner:
    owner = Owner(rules=rules)
    owner.looks(0.0, rules.quiet_s + STEP_S)
    assert owner.standing.lent
    return owner


def test_programs_that_wait_for_a_cpu_reclaim_it_as_load_does() -> None:
    owner = lent()
    owner.looks(0.1, 5, stalled=0.24)
    owner.looks(0.1, 0.75, stalled=0.5)
    assert owner.standing.lent
    owner.looks(0.1, stalled=0.3)
    assert (owner.standing.lent, owner.standing.why) == (False, BY_STALLS)
    owner.looks(0.1, 2 * RULES.quiet_s + STEP_S, stalled=0.9)
    assert owner.standing.lent, "while it is not lent, nobody but its owner keeps its programs waiting"


def test_it_is_lent_after_a_quiet_time_and_not_before() -> None:
    owner = Owner()
    owner.looks(0.1, 59)
    assert not owner.standing.lent
    owner.looks(0.19, 2)
    assert owner.standing.lent


def test_time_that_nobody_looked_at_is_no_quiet_time() -> None:
    owner = Owner()
    owner.looks(0.0, 30)
    slept = Look(owner.now, owner.now + 3600, 0.0)
    assert not looked(owner.standing, RULES, slept).lent
    assert looked(owner.standing, RULES, slept).quiet_since is None


def test_one_busy_moment_starts_the_quiet_time_again() -> None:
    owner = Owner()
    owner.looks(0.1, 59)
    owner.looks(0.2)
    owner.looks(0.1, 59)
    assert not owner.standing.lent


def test_a_second_of_load_reclaims_it_and_less_does_not() -> None:
    owner = lent()
    owner.looks(0.5, 0.75)
    owner.looks(0.49)
    owner.looks(0.9, 0.75)
    assert owner.standing.lent
    owner.looks(0.5)
    assert not owner.standing.lent
    assert owner.standing.why == BY_LOAD


def test_short_memory_reclaims_it_at_once_and_keeps_it() -> None:
    owner = lent()
    owner.looks(0.0, short=True)
    assert not owner.standing.lent
    assert owner.standing.why == BY_MEMORY
    owner.looks(0.0, 500, short=True)
    assert not owner.standing.lent


def test_each_reclaim_doubles_the_quiet_time_up_to_a_bound() -> None:
    owner = lent()
    found = []
    for _ in range(4):
        owner.looks(1.0, 1)
        found.append(owner.standing.quiet_s)
        owner.looks(0.0, owner.standing.quiet_s + STEP_S)
        assert owner.standing.lent
    assert found == [120, 240, 240, 240]


def test_a_long_calm_halves_it_again() -> None:
    owner = lent()
    owner.looks(1.0, 1)
    owner.looks(0.0, 121)
    owner.looks(0.3, CALM * 120 + 1)
    assert owner.standing.quiet_s == 60
    owner.looks(0.0, CALM * 60 + 1)
    assert owner.standing.quiet_s == 60, "no shorter than the rules say"


def test_what_was_reclaimed_by_command_stays_so() -> None:
    owner = lent()
    owner.says("reclaim")
    assert owner.standing.why == BY_COMMAND
    owner.looks(0.0, 1000)
    assert not owner.standing.lent
    owner.says("lend")
    assert owner.standing.lent
    assert owner.standing.quiet_s == 60, "a command tells nothing of how restless the owner's programs are"


def test_a_command_to_lend_does_not_hold_against_load() -> None:
    owner = Owner()
    owner.says("lend")
    owner.looks(1.0, 1)
    assert not owner.standing.lent
    owner.looks(0.0, 119)
    assert not owner.standing.lent


acts = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]), st.sampled_from([0.25, 1.0, 5.0, 30.0])),
        st.sampled_from([(0.0, 130.0), (0.0, 250.0)]),
        st.sampled_from(["reclaim", "lend", "short"]),
    ),
    max_size=12,
)


@given(acts)
def test_it_never_flaps_faster_than_its_quiet_time_and_a_command_wins_at_once(
    acts: list[tuple[float, float] | str],
) -> None:
    owner = Owner()
    said: set[float] = set()
    for act in acts:
        if isinstance(act, tuple):
            owner.looks(*act)
        elif act == "short":
            owner.looks(0.0, short=True)
        else:
            command: Command = "reclaim" if act == "reclaim" else "lend"
            owner.says(command)
            said.add(owner.now)
            assert owner.standing.lent is (command == "lend")
        assert RULES.quiet_s <= owner.standing.quiet_s <= RULES.longest_quiet_s
    before = 1000.0  # it began as its owner's
    for at, is_lent in owner.changes:
        if is_lent:
            assert at in said or at - before >= RULES.quiet_s
        else:
            before = at


@given(st.floats(0, 1), st.booleans(), st.floats(1, 1e6))
def test_what_the_owner_has_by_command_no_look_changes(others: float, short: bool, now: float) -> None:
    standing = commanded(Standing(lent=True, quiet_s=60.0, quiet_since=0.0), "reclaim", now)
    assert looked(standing, RULES, Look(now, now + 1, others, short)) == standing
    assert commanded(standing, "reclaim", now + 2) == standing
