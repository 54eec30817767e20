"""The beta distribution, against scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from ces_manager.availability.beta import beta_below, beta_quantile

SHAPES = st.floats(1, 1e5)


@given(st.floats(0, 1), SHAPES, SHAPES)
def test_the_distribution_function_is_scipys(x: float, a: float, b: float) -> None:
    assert beta_below(x, a, b) == pytest.approx(beta.cdf(x, a, b), abs=1e-8)


@given(st.sampled_from([0.01, 0.05, 0.5, 0.95]), SHAPES, SHAPES)
def test_quantiles_are_scipys(q: float, a: float, b: float) -> None:
    assert beta_quantile(q, a, b) == pytest.approx(beta.ppf(q, a, b), abs=1e-8)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (61, 1), (1, 61), (43201, 1), (43201, 5), (62000, 62000), (2, 1e6)])
def test_quantiles_of_few_and_of_many(a: float, b: float) -> None:
    assert beta_quantile(0.05, a, b) == pytest.approx(beta.ppf(0.05, a, b), abs=1e-9)
