"""Themis: fair shares by hand, and who runs by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from malleable_jobs import job, moment, running

from ces_core.malleable.peers.themis import Claim, Themis, fair_shares


def rho(claim: Claim, share: float) -> float:
    return (claim.age_s + claim.busy_s / share) / claim.alone_s


def test_equals_share_alike() -> None:
    assert fair_shares([Claim(0.0, 10.0, 20.0, 4)] * 2, 4) == pytest.approx([0.5, 0.5])


def test_who_needs_twice_as_much_has_two_thirds() -> None:
    """Both lack the same time by what they would take alone."""
    claims = [Claim(0.0, 20.0, 10.0, 4), Claim(0.0, 10.0, 10.0, 4)]
    assert fair_shares(claims, 4) == pytest.approx([2 / 3, 1 / 3])


def test_who_has_waited_has_more() -> None:
    """(30 + 10 / x) / 60 = (10 / (1 - x)) / 20 where x is 1/2 and a little more."""
    waited, new = fair_shares([Claim(30.0, 10.0, 40.0, 4), Claim(0.0, 10.0, 20.0, 4)], 4)
    assert waited > new
    assert waited + new == pytest.approx(1.0)
    assert rho(Claim(30.0, 10.0, 40.0, 4), waited) == pytest.approx(rho(Claim(0.0, 10.0, 20.0, 4), new))


claims = st.builds(Claim, st.floats(0, 100), st.floats(1, 100), st.floats(1, 300), st.sampled_from([1, 2, 4]))


@given(st.lists(claims, min_size=1, max_size=6), st.lists(st.floats(0.05, 1.0), min_size=6, max_size=6))
def test_no_other_shares_are_fairer(drawn: list[Claim], others: list[float]) -> None:
    shares = fair_shares(drawn, 4)
    assert all(0.0 < share <= 1.0 for share in shares)
    assert sum(claim.gpus * share for claim, share in zip(drawn, shares, strict=True)) <= 4 * (1 + 1e-6)
    worst = max(rho(claim, share) for claim, share in zip(drawn, shares, strict=True))
    used = sum(claim.gpus * other for claim, other in zip(drawn, others, strict=False))
    scaled = [min(1.0, other * min(1.0, 4 / used)) for other in others]
    assert worst <= max(rho(claim, other) for claim, other in zip(drawn, scaled, strict=False)) * (1 + 1e-6)


def test_who_is_owed_most_runs() -> None:
    """The first has done nearly everything, and would wait little for the rest."""
    nearly, new = running(job("nearly", 100.0, asked=4), 4, left=5.0, ran_s=24.0), running(job("new", 100.0, asked=4))
    found = Themis(60.0)(moment(nearly, new, now_s=30.0))
    assert (found.sizes, found.until_s) == ({"new": 4}, 90.0)


def test_all_run_where_all_fit() -> None:
    assert Themis(60.0)(moment(running(job("a", 9.0)), running(job("b", 9.0, asked=2)))).sizes == {"a": 1, "b": 2}
